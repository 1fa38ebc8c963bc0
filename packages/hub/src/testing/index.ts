export { type Faults, HubServer, type ServedRepository } from "./hub-server.js";
