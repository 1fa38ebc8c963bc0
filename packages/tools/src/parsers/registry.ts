import { parseChatmlJson } from "./chatml-json.js";
import { parseHermes } from "./hermes.js";
import { parseLlama3Json } from "./llama3-json.js";
import { parsePythonFence } from "./python-fence.js";
import { parseQwen3Coder } from "./qwen3-coder.js";
import type { ToolParser } from "./tool-parser.js";

const parsers = new Map<string, ToolParser>([
  ["hermes", parseHermes],
  ["qwen3_coder", parseQwen3Coder],
  ["llama3_json", parseLlama3Json],
  ["chatml-json", parseChatmlJson],
  ["python", parsePythonFence],
]);

/** Makes a parser available as `multi_turn.format`; a later one of the same name replaces it. */
export function registerToolParser(format: string, parser: ToolParser): void {
  parsers.set(format, parser);
}

export function getToolParser(format: string): ToolParser | undefined {
  return parsers.get(format);
}

export function listToolParsers(): string[] {
  return [...parsers.keys()].sort();
}
