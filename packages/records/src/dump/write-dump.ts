import { type ChatMessage, type LoadedImage, writeFileAtomically } from "@cria/core";
import { describeMessages, nameImageFile, writeDumpImages } from "./dump-images.js";
import type { DumpLine } from "./dump-line.js";
import type { TrainingMessages } from "./make-training-messages.js";

/** Formats a conversation as a line of a dump. */
export function formatDumpLine(line: DumpLine): string {
  const { messages, segments } = line;
  const described = {
    ...line,
    messages: describeMessages(messages),
    ...(segments ? { segments: segments.map((part) => ({ ...part, messages: describeMessages(part.messages) })) } : {}),
  };
  return `${JSON.stringify(described)}\n`;
}

/**
 * Writes a dump atomically, with its images beside it.
 * @param images additional images that no message shows.
 */
export async function writeDump(
  file: string,
  lines: readonly DumpLine[],
  images: readonly LoadedImage[] = [],
): Promise<void> {
  await writeDumpImages(file, lines, images);
  await writeFileAtomically(file, lines.map(formatDumpLine).join(""));
}

/** Writes rows for `cria sft` atomically; images lie beside the file and are referenced by path. */
export async function writeTrainingRows(file: string, rows: readonly TrainingMessages[]): Promise<void> {
  await writeDumpImages(file, rows);
  const described = rows.map((row) => ({ ...row, messages: row.messages.map(nameImages) }));
  await writeFileAtomically(file, described.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

function nameImages(message: ChatMessage): unknown {
  if (typeof message.content === "string") return message;
  const content = message.content.map((part) =>
    part.type === "image" && "hash" in part.image ? { type: "image", image: nameImageFile(part.image) } : part,
  );
  return { ...message, content };
}
