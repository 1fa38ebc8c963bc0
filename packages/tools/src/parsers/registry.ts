import { ConfigError, Registry } from "@cria/core";
import { importExport } from "../user-code/import-export.js";
import { parseChatmlJson } from "./chatml-json.js";
import { parseDeepseekV3 } from "./deepseek-v3.js";
import { parseGptOss } from "./gpt-oss.js";
import { parseHermes } from "./hermes.js";
import { parseLlama3Json } from "./llama3-json.js";
import { parseMistral } from "./mistral.js";
import { parsePythonFence } from "./python-fence.js";
import { parseQwen3Coder } from "./qwen3-coder.js";
import { findThinkingEnd } from "./thinking.js";
import type { ToolParser } from "./tool-parser.js";

/** Parsers by `multi_turn.format`; `getToolParser` also takes other frameworks' names for them. */
export const toolParsers = new Registry<ToolParser>(
  "tool-call format",
  {
    hermes: parseHermes,
    qwen3_coder: parseQwen3Coder,
    llama3_json: parseLlama3Json,
    "chatml-json": parseChatmlJson,
    python: parsePythonFence,
    mistral: parseMistral,
    gpt_oss: parseGptOss,
    deepseek_v3: parseDeepseekV3,
  },
  { subject: "multi_turn.format", alternative: "./module.ts#parse" },
);

/** What other frameworks call some of them. */
const aliases: Record<string, string> = { "gpt-oss": "gpt_oss", openai: "gpt_oss", deepseek_v31: "deepseek_v3" };

/** Makes a parser available to every run as `multi_turn.format`; a later one of the same name replaces it. */
export function registerToolParser(format: string, parser: ToolParser): void {
  toolParsers.register(format, skipFirstThoughts(parser));
}

/** @throws ConfigError for a format that no parser has. */
export function getToolParser(format: string, parsers = toolParsers): ToolParser {
  return parsers.find(format) ?? parsers.get(resolveFormat(format));
}

/** The name that Cria has for a format. */
export function resolveFormat(format: string): string {
  return Object.hasOwn(aliases, format) ? aliases[format]! : format;
}

/** The parser of a format, or the one that stands in its place. @throws ConfigError for a format that no parser has. */
export function resolveToolParser(format: string | ToolParser): ToolParser {
  return typeof format === "string" ? getToolParser(format) : format;
}

/**
 * The parser that `multi_turn.format` means: a name, or `module#export` of the user's. Relative modules start at `baseFolder`.
 * @throws ConfigError when there is none.
 */
export async function loadToolParser(format: string, baseFolder: string, parsers = toolParsers): Promise<ToolParser> {
  if (!format.includes("#")) return getToolParser(format, parsers);
  const found = await importExport(format, baseFolder, "multi_turn.format");
  if (typeof found === "function") return skipFirstThoughts(found as ToolParser);
  throw new ConfigError("is not a parser of tool calls", {
    code: "config/bad-value",
    subject: `multi_turn.format "${format}"`,
    expected: "a function (text, tools) => ({ content, calls })",
    received: typeof found,
  });
}

/** Built-in parsers skip thinking anywhere; a user's parser does not see the thinking that a turn begins with. */
function skipFirstThoughts(parse: ToolParser): ToolParser {
  return (text, tools) => {
    const end = findThinkingEnd(text);
    if (end === 0) return parse(text, tools);
    const { content, ...rest } = parse(text.slice(end), tools);
    return { ...rest, content: text.slice(0, end) + content };
  };
}
