import { join } from "node:path";
import { pathToFileURL } from "node:url";

export interface RealModel {
  realPython: string;
  /** Why there is none. */
  missingModel: string | null;
}

/** By its path, since no benchmark imports scripts. */
const script = (name: string) => pathToFileURL(join(import.meta.dirname, "..", "scripts", name)).href;

/** The published model and the Python that scripts/fetch-real-model.mjs fetches. */
export const findRealModel = (): Promise<RealModel> => import(script("real-model.mjs"));

/** The path of the published model, written in another type. */
export async function writeRealModel(type: "F32" | "Q8_0"): Promise<string> {
  const { getRealFile } = (await import(script("real-file.mjs"))) as { getRealFile: (type: string) => Promise<string> };
  return getRealFile(type);
}
