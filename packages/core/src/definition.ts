// Exports for the definition of a task and its tools. The build puts this code into separate chunks (tsup.config.ts),
// so that a bundle with only a definition leaves out the code that runs it. It is not published under a name.

export { checkOptions, isFunction, isObject, isText, optionChecks, refuseOption } from "./check-options.js";
export { contentText, findLastAnswer } from "./content.js";
export { ConfigError } from "./errors/config-error.js";
export { ToolError } from "./errors/tool-error.js";
export { findNearest } from "./find-nearest.js";
export { toContentPart, toImageSource } from "./images/content-parts.js";
export { Registry } from "./registry.js";
