import { type ImageLimits, type LoadedImage, loadImage } from "@cria/core";
import { toImageSource } from "@cria/core/internal";
import type { ConversationWork, DatasetRow } from "@cria/rollout";

/**
 * Makes conversations portable: other machines lack the rows' folder, so images that a row's `tools_kwargs` name by
 * path travel along.
 */
export function makePortable(limits: ImageLimits): (work: ConversationWork) => Promise<ConversationWork> {
  // All samples of a group share one row.
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
    // Most texts are no paths. The reader of a wrong path reports it there as it would here.
    const image = await loadImage({ path }, { ...limits, folder }).catch(() => undefined);
    if (image) Object.defineProperty(files, path, { value: image, enumerable: true });
  }
  return Object.keys(files).length === 0 ? row : { ...row, files };
}

/** Search depth in a row's data, which may refer to itself. */
const MOST_DEPTH = 20;

/** Texts within a value, as possible paths. */
function listPaths(value: unknown, depth = 0): string[] {
  if (typeof value === "string") {
    const source = toImageSource(value, { strings: "path" });
    return source && "path" in source ? [source.path] : [];
  }
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || depth > MOST_DEPTH) return [];
  return Object.values(value).flatMap((each) => listPaths(each, depth + 1));
}
