// The same loader for ESM.
import loader from "./index.cjs";

export const { listCandidates, loadAddon, namePrebuild } = loader;
