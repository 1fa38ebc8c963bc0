import { CriaError } from "./cria-error.js";

/** An error at the boundary of many machines: jobs, workers, the bus between them. */
export class ClusterError extends CriaError {}
