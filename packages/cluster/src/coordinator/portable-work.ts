import { type ImageLimits, type LoadedImage, loadImage } from "@cria/core";
import { toImageSource } from "@cria/core/internal";
import type { ConversationWork, DatasetRow } from "@cria/rollout";

/**
 * Makes conversations such that other machines can hold them: these have no rows' folder. Images that a row's `tools_kwargs` name by
 * path go along.
 */
export function makePortable(limits: ImageLimits): (work: ConversationWork) => Promise<ConversationWork> {
  // All samples of a group have one row.
  const rows = new WeakMap<DatasetRow, Promise<DatasetRow>>();
  return async (work) => {
    const { row } = work;
    if (row.folder === undefined) return work;
    const portable = rows.get(row) ?? carryFiles(row, row.folder, limits);
    rows.set(row, portable);
    return { ...work, row: await portable };
  };
}

async function carryFiles({ folder: _, ...row }: DatasetRow, folder: string, limits: ImageLimits): Promise<DatasetRow> {
  const files: Record<string, LoadedImage> = {};
  for (const path of new Set(listPaths(row.extraInfo.tools_kwargs))) {
    // Most texts are no paths. Who reads one that is wrong says so there as here.
    const image = await loadImage({ path }, { ...limits, folder }).catch(() => undefined);
    if (image) Object.defineProperty(files, path, { value: image, enumerable: true });
  }
  return Object.keys(files).length === 0 ? row : { ...row, files };
}

/** Deeper in a row's data nothing is looked for: it may refer to itself. */
const MOST_DEPTH = 20;

/** Texts within a value, as paths. */
function listPaths(value: unknown, depth = 0): string[] {
  if (typeof value === "string") {
    const source = toImageSource(value, { strings: "path" });
    return source && "path" in source ? [source.path] : [];
  }
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || depth > MOST_DEPTH) return [];
  return Object.values(value).flatMap((each) => listPaths(each, depth + 1));
}
