export * from "./dump/index.js";
export * from "./filter/index.js";
export * from "./live/index.js";
export * from "./replay/index.js";
