import { createHash } from "node:crypto";
import type { IndexRow } from "./index-row.js";

/**
 * The id of a conversation's prompt. A row of training and one of validation may share a uid: their files tell them
 * apart.
 */
export function makePromptId({ uid, place, dataSource }: Pick<IndexRow, "uid" | "place" | "dataSource">): string {
  return createHash("sha256")
    .update(JSON.stringify([uid, place, dataSource]))
    .digest("hex")
    .slice(0, 16);
}
