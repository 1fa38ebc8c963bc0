import { CriaError } from "./cria-error.js";

/** An error at the boundary of a tool or interaction. */
export class ToolError extends CriaError {}
