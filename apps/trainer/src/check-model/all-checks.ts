import { decodeCheck } from "./checks/decode.js";
import { gradientsCheck } from "./checks/gradients.js";
import { loadCheck } from "./checks/load.js";
import { speedCheck } from "./checks/speed.js";
import { stockCheck } from "./checks/stock.js";
import { templateCheck } from "./checks/template.js";
import type { ModelCheck } from "./model-check.js";

/** In order: without the first no other makes sense. */
export const allChecks: readonly ModelCheck[] = [
  loadCheck,
  templateCheck,
  decodeCheck,
  gradientsCheck,
  stockCheck,
  speedCheck,
];
