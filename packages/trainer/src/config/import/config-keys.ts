import { teacherEntry } from "../sections/distillation.js";
import { sftConfigSchema } from "../sft-config.js";
import { trainConfigSchema } from "../train-config.js";
import { findOptionKeys } from "./option-keys.js";

/** The options in the config of `cria train`. */
export const trainKeys = findOptionKeys(trainConfigSchema);

/** Those of one teacher, in its entry. */
export const teacherKeys = findOptionKeys(teacherEntry);

/** Those of `cria sft`. */
export const sftKeys = findOptionKeys(sftConfigSchema);
