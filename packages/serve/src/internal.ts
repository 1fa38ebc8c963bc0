// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { checkExposure, checkOrigin, isLoopback } from "./http/access.js";
export { EventSink, type EventSinkOptions } from "./http/event-sink.js";
export * from "./index.js";
export { openAgentEndpoint } from "./model/agent-endpoint.js";
export { type FailureStatus, RequestError } from "./request-error.js";
