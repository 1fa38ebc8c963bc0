// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { resolveProjector } from "@cria/hub/internal";
export { listBackends, listMissingParts } from "./backends.js";
export { readArray, readTensorBytes } from "./gguf-files/read-gguf.js";
export { estimateLargestEncoding, readTowerShape, type TowerShape } from "./images/encoding-memory.js";
export { defaultImageMemory } from "./images/open-images.js";
export { type OpenedProjector, type OpenProjectorOptions, openProjector } from "./images/open-projector.js";
export * from "./index.js";
export { lockFile } from "./lock-file.js";
export { checkTrainable, listTrainableArchitectures } from "./trainable-architectures.js";
export { type LoadValueModelOptions, loadValueModel, ValueModel } from "./value-model.js";
