// The same loader for ESM.
import loader from "./index.cjs";

export const {
  findVisionLibrary,
  listCandidates,
  loadAddon,
  namePrebuild,
  nameVisionLibrary,
  nameVisionPackage,
  projectorTrial,
} = loader;
