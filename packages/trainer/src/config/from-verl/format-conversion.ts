import { Document, isScalar } from "yaml";
import type { SetAside } from "../raw-config.js";
import type { Conversion } from "./convert-config.js";

const WIDTH = 118;

/** Formats a conversion as a YAML config; keys that were not converted are listed in comments. */
export function formatConversion({ config, ...rest }: Conversion, file: string): string {
  const head = [
    `# From ${file}, for \`cria train\`. Defaults that differ from verl's: docs/verl-keys.md.`,
    ...printList("To fill in", rest.toFillIn),
    ...printList("Not supported: training differs without", rest.unsupported),
    ...printList("Set aside", group(rest.setAside)),
    ...(rest.notes.length > 0 ? ["#", "# How it was read:", ...rest.notes.flatMap((note) => wrap(note))] : []),
  ];
  const document = new Document(config);
  for (const key of rest.verlDefaults) {
    const node = document.getIn(key.split("."), true);
    if (isScalar(node)) node.comment = " verl's default";
  }
  return `${head.join("\n")}\n\n${document.toString({ lineWidth: 0 })}`;
}

function printList(title: string, entries: readonly SetAside[]): string[] {
  if (entries.length === 0) return [];
  return ["#", `# ${title}:`, ...entries.flatMap(({ key, reason }) => wrap(`${key}: ${reason}`))];
}

/** Merges entries with the same reason. */
function group(entries: readonly SetAside[]): SetAside[] {
  const keys = new Map<string, string[]>();
  for (const { key, reason } of entries) keys.set(reason, [...(keys.get(reason) ?? []), key]);
  return [...keys].map(([reason, named]) => ({ key: named.join(", "), reason }));
}

/** Formats one entry as comment lines. */
function wrap(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`#   ${lines.length > 0 ? "  " : ""}${word}`);
  }
  return lines;
}
