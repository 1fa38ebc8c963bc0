import { CriaError } from "./cria-error.js";

/** An error of a tool or interaction. */
export class ToolError extends CriaError {}
