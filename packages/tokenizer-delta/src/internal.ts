// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { checkTokenization } from "./check-tokenization.js";
export { splitByMask } from "./explain-mismatch.js";
export * from "./index.js";
export { defaultRenderLimits } from "./render-limits.js";
export { ownText } from "./rendered-text.js";
