/**
 * Names of the rows of trainings on one machine. Separate from the programs, which load models: pages only need the
 * names.
 */
import { MEASURED_MODEL } from "../inputs.js";

export const WAITING_CASE = "one machine: tools that sleep";
export const ONE_WORKER_CASE = `one machine: one worker, ${MEASURED_MODEL}`;
