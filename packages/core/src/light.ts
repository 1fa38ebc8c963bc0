// What the definition of a task and its tools needs. The build puts its code into chunks of its own (tsup.config.ts), so that a bundle
// with a definition alone leaves out all that runs one. It is not published under a name.

export { checkOptions, isFunction, isObject, isText, optionChecks, refuseOption } from "./check-options.js";
export { contentText, findLastAnswer } from "./content.js";
export { ConfigError } from "./errors/config-error.js";
export { ToolError } from "./errors/tool-error.js";
export { findNearest } from "./find-nearest.js";
export { toContentPart, toImageSource } from "./images/content-parts.js";
export { Registry } from "./registry.js";
