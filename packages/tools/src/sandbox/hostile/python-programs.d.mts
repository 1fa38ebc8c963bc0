import type { HostileProgram } from "./javascript-programs.mjs";
/** @see python-programs.mjs */
export const pythonPrograms: HostileProgram[];
