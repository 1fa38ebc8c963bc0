import { CriaError } from "./cria-error.js";

/** An error of chat templates and tokenization. */
export class TokenizerError extends CriaError {}
