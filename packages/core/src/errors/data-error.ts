import { CriaError } from "./cria-error.js";

/** An error at the boundary of datasets and files of rows. */
export class DataError extends CriaError {}
