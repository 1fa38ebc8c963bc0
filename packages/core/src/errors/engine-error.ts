import { CriaError } from "./cria-error.js";

/** An error at the boundary of the native engine: models, sequences, training. */
export class EngineError extends CriaError {}
