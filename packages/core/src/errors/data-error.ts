import { CriaError } from "./cria-error.js";

/** An error of datasets and files of rows. */
export class DataError extends CriaError {}
