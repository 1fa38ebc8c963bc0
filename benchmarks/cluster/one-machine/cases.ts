/** How the rows of trainings on one machine are called. Apart from the programs, which load models: pages need the names alone. */
import { MEASURED_MODEL } from "../inputs.js";

export const WAITING_CASE = "one machine: tools that sleep";
export const ONE_WORKER_CASE = `one machine: one worker, ${MEASURED_MODEL}`;
