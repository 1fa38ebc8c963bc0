// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { readHubSettings } from "./hub-settings.js";
export * from "./index.js";
export { isAddress } from "./parse-address.js";
export { resolveProjector } from "./resolve-model.js";
