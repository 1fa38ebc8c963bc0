// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { defaultTimes, MAX_MESSAGE_BYTES, PROTOCOL } from "./bus/job-bus.js";
export { hashBytes, jobId } from "./bus/job-record.js";
export * from "./index.js";
