import { ConfigError, DataError, listImages, type PolicyEngine } from "@cria/core";
import type { ImageAccess } from "../images/load-content.js";
import type { DatasetRow } from "./dataset-row.js";
import { haveImages } from "./place-images.js";

/** @throws ConfigError for rows with images if the model has no projector: it would answer without seeing them. */
export function checkProjector(rows: readonly DatasetRow[], { images }: Pick<PolicyEngine, "images">): void {
  const shown = images ? undefined : rows.find(({ prompt }) => haveImages(prompt));
  if (shown) throw missProjector(shown);
}

/**
 * Checks the sources of the rows' images before any is read.
 * @throws DataError for a web address if fetching is off, or for a path in a row that comes from no file.
 */
export function checkSources(rows: readonly DatasetRow[], access: ImageAccess = {}): void {
  for (const row of rows) {
    for (const { image } of row.prompt.flatMap(({ content }) => listImages(content))) {
      const isAddress = "url" in image && !image.url.startsWith("data:");
      if (isAddress && !access.fetch) throw refuse(row, image.url, "set data.fetch_images: true, or fetch them before");
      const isPath = "path" in image && row.folder === undefined;
      if (isPath) throw refuse(row, image.path, "give the file's bytes, or read the rows from a file");
    }
  }
}

function missProjector({ place }: DatasetRow): ConfigError {
  return new ConfigError("has images, and the model has no projector", {
    code: "config/no-projector",
    subject: place,
    expected: "a model with the projector that makes its images of files (llama.cpp calls it mmproj), or rows of text",
    received: "no actor_rollout_ref.model.mmproj",
    remedy: "set actor_rollout_ref.model.mmproj (--mmproj, mmproj of loadPolicy)",
  });
}

function refuse({ place }: DatasetRow, source: string, remedy: string): DataError {
  return new DataError("has an image that may not be read", {
    code: "data/image-refused",
    subject: place,
    expected: "bytes, a data address, or a path beside its file",
    received: source.slice(0, 200),
    remedy,
  });
}
