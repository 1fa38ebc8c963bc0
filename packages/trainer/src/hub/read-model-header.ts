import { type GgufHeader, readGguf } from "@cria/engine";
import { findModelFile } from "./find-model-file.js";

/** Reads the header of a model's file; null if it is missing or cannot be read, which loading the model reports. */
export async function readModelHeader(path: string): Promise<GgufHeader | null> {
  try {
    const file = await findModelFile(path);
    return file === null ? null : await readGguf(file);
  } catch {
    return null;
  }
}
