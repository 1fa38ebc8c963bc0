import { CriaError } from "./cria-error.js";

/** An error of a cluster: jobs, workers, the bus between them. */
export class ClusterError extends CriaError {}
