import { type ImageEncoder, listImages, loadImage } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import type { ToolImages } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import type { ImageAccess } from "../images/load-content.js";

/**
 * Access of a conversation's tools to images; undefined if the policy takes none.
 * @param row with its prompt's images in memory.
 */
export function makeToolImages(
  row: DatasetRow,
  encoder: ImageEncoder | undefined,
  access: ImageAccess,
): ToolImages | undefined {
  if (!encoder) return undefined;
  return {
    prompt: row.prompt.flatMap(({ content }) => listImages(content).map(({ image }) => image)).filter(isLoaded),
    load: async (source) => {
      const { files = {}, folder } = row;
      if ("path" in source && Object.hasOwn(files, source.path)) return files[source.path]!;
      return loadImage(source, { ...access, subject: `image of ${row.place}`, folder });
    },
    decode: (image) => encoder.decode(image),
  };
}
