export {
  type Admission,
  type Authenticate,
  authenticateByKey,
  checkExposure,
  checkOrigin,
  isLoopback,
  type OriginRules,
} from "./http/access.js";
export { createApp } from "./http/create-app.js";
export { Endpoint, type EndpointLimits, type EndpointOptions } from "./http/endpoint.js";
export { EventSink, type EventSinkOptions } from "./http/event-sink.js";
export { type Listening, type ListenOptions, listen } from "./http/listen.js";
export { createFetch } from "./in-process/create-fetch.js";
export type { LocalChat } from "./in-process/serve-chat.js";
export { openAgentEndpoint } from "./model/agent-endpoint.js";
export { type ServeEngineOptions, serveEngine } from "./model/serve-engine.js";
export type { ServedModel, ServedSession, TextAnswer, TextOptions, TextRequest } from "./model/served-model.js";
export { type ReportedReward, type SessionRecord, Sessions, type SessionsOptions } from "./model/sessions.js";
export type { SpelledToken } from "./protocol/protocol.js";
export { type FailureStatus, RequestError } from "./request-error.js";
