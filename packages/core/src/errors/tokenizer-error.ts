import { CriaError } from "./cria-error.js";

/** An error at the boundary of chat templates and tokenization. */
export class TokenizerError extends CriaError {}
