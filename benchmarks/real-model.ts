import { join } from "node:path";
import { pathToFileURL } from "node:url";

export interface RealModel {
  realModel: { path: string; file: string };
  realPython: string;
  /** Why there is none. */
  missingModel: string | null;
}

/**
 * The published model and the Python that scripts/fetch-real-model.mjs fetches: by its path, since no benchmark imports
 * scripts.
 */
export const findRealModel = (): Promise<RealModel> =>
  import(pathToFileURL(join(import.meta.dirname, "..", "..", "scripts", "real-model.mjs")).href);
