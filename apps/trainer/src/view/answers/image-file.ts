import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RunReader } from "../../runs/run-reader.js";
import { refuseUnknown } from "./open-dump.js";

/** The name of an image's file: its hash, and its type. */
export const imageNamePattern = "[0-9a-f]{64}\\.(?:png|jpg|webp|bmp|gif)";

const types: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  bmp: "image/bmp",
  gif: "image/gif",
};
/** Largest file that is read. */
const mostBytes = 256 << 20;

/**
 * A picture of the run's conversations. Only dumped pictures are served: a file must have the SHA-256 of its name, even
 * behind a link.
 * @param name that fits `imageNamePattern`.
 * @throws RequestError 404 when no dump has it.
 */
export async function readImageFile(
  { dumps }: RunReader,
  name: string,
): Promise<{ content: Uint8Array<ArrayBuffer>; type: string }> {
  const [hash, extension] = name.split(".") as [string, string];
  for (const folder of new Set(dumps.map(({ file }) => dirname(file)))) {
    const content = await readFileOf(join(folder, "images", name));
    const isIt = content && createHash("sha256").update(content).digest("hex") === hash;
    if (isIt) return { content, type: types[extension]! };
  }
  throw refuseUnknown(`image ${name}`, "an image that a conversation of the run shows");
}

/** Null when there is no such file, or it cannot be an image. */
async function readFileOf(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const file = await open(path, "r").catch(() => null);
  try {
    const found = await file?.stat();
    return found?.isFile() && found.size <= mostBytes ? Uint8Array.from(await file!.readFile()) : null;
  } finally {
    await file?.close();
  }
}
