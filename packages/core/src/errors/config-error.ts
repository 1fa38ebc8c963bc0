import { CriaError } from "./cria-error.js";

/** An error at the boundary of configuration. */
export class ConfigError extends CriaError {}
