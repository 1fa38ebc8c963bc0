import { decodeCheck } from "./checks/decode.js";
import { gradientsCheck } from "./checks/gradients.js";
import { loadCheck } from "./checks/load.js";
import { speedCheck } from "./checks/speed.js";
import { stockCheck } from "./checks/stock.js";
import { templateCheck } from "./checks/template.js";
import type { ModelCheck } from "./model-check.js";

/** In order: the others need the first one. */
export const allChecks: readonly ModelCheck[] = [
  loadCheck,
  templateCheck,
  decodeCheck,
  gradientsCheck,
  stockCheck,
  speedCheck,
];
