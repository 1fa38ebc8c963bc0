import { CriaError } from "./cria-error.js";

/** An error of configuration. */
export class ConfigError extends CriaError {}
