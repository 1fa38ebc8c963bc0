import { CriaError } from "./cria-error.js";

/** An error of the native engine: models, sequences, training. */
export class EngineError extends CriaError {}
