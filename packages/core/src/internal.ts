// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { userCacheFolder } from "./cache-folder.js";
export {
  type ChecksOf,
  checkOptions,
  isFunction,
  isObject,
  isText,
  type OptionCheck,
  optionChecks,
  previewValue,
  refuseOption,
} from "./check-options.js";
export { joinContent, showContent, toContent } from "./content.js";
export { describeIssue, describeSchema, findSchema, withoutLibraryTexts } from "./describe-schema.js";
export { findNearest } from "./find-nearest.js";
export { formatValue } from "./format-value.js";
export { guardWrite, suggestWriteRemedy } from "./guard-write.js";
export { type HashOptions, hashFile, hashFiles } from "./hash-file.js";
export { shuffleIndices } from "./hash-seed.js";
export { type ReadImageOptions, toContentPart, toContentParts, toImageSource } from "./images/content-parts.js";
export { type ImageIdOptions, ImageIds, type VectorRange } from "./images/image-ids.js";
export { isLoaded } from "./images/image-source.js";
export { measureImage, readOrientation, toImageRecord } from "./images/load-image.js";
export { isWebp, readWebpFile, type WebpFile, type WebpFrame } from "./images/webp-file.js";
export * from "./index.js";
export { peakMemory } from "./peak-memory.js";
export { pickRows } from "./pick-rows.js";
export { pickSampling } from "./sampling.js";
export { listPaths, type TrajectoryPath } from "./trajectory-paths.js";
export { listSampledTurns, UNNAMED_ROLE } from "./trajectory-turns.js";
