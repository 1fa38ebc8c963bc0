import { ConfigError, Registry } from "@cria/core";
import { isObject } from "@cria/core/internal";
import type { ToolParser } from "../parsers/tool-parser.js";
import { importExport } from "../user-code/import-export.js";
import { apertus } from "./apertus.js";
import { apriel } from "./apriel.js";
import { chatmlJson } from "./chatml-json.js";
import { cohere } from "./cohere.js";
import { deepseekV3 } from "./deepseek-v3.js";
import { deepseekV32 } from "./deepseek-v32.js";
import { addToolFormatName } from "./format-names.js";
import { functiongemma } from "./functiongemma.js";
import { gemma4 } from "./gemma4.js";
import { glm45 } from "./glm45.js";
import { gptOss } from "./gpt-oss.js";
import { granite } from "./granite.js";
import { hermes } from "./hermes.js";
import { hy3 } from "./hy3.js";
import { kimiK2 } from "./kimi-k2.js";
import { kimiK3 } from "./kimi-k3.js";
import { llama3Json } from "./llama3-json.js";
import { minimaxM2 } from "./minimax-m2.js";
import { minimaxM3 } from "./minimax-m3.js";
import { mistral } from "./mistral.js";
import { python } from "./python.js";
import { pythonic } from "./pythonic.js";
import { qwen3Coder } from "./qwen3-coder.js";
import { solarOpen } from "./solar-open.js";
import { defineToolFormat, formatOfParser, type ToolFormat, type ToolFormatParts } from "./tool-format.js";

const builtIn = [
  hermes,
  qwen3Coder,
  llama3Json,
  chatmlJson,
  python,
  mistral,
  gptOss,
  deepseekV3,
  glm45,
  kimiK2,
  kimiK3,
  minimaxM2,
  minimaxM3,
  deepseekV32,
  granite,
  pythonic,
  functiongemma,
  gemma4,
  cohere,
  apertus,
  hy3,
  solarOpen,
  apriel,
];

/** Formats by `multi_turn.format`; `getToolFormat` also takes other frameworks' names for them. */
export const toolFormats = new Registry<ToolFormat>(
  "tool-call format",
  Object.fromEntries(builtIn.map((format) => [format.name, format])),
  { subject: "multi_turn.format", alternative: "./module.ts#parse" },
);

/**
 * A format of tool calls: its name, the format itself, or a parser, which becomes a format without any further
 * knowledge of it.
 */
export type GivenToolFormat = string | ToolFormat | ToolParser;

/**
 * Makes a format available to every run as `multi_turn.format`; a later one of the same name replaces it.
 * @throws ConfigError
 */
export function registerToolFormat(parts: ToolFormatParts): void {
  const format = defineToolFormat(parts);
  toolFormats.register(format.name, format);
  addToolFormatName(format.name, format.aliases);
}

/** Registers a parser as a format. Other frameworks' names for a format that it replaces stay. */
export function registerToolParser(name: string, parser: ToolParser): void {
  const aliases = toolFormats.find(name)?.aliases ?? [];
  registerToolFormat({ ...formatOfParser(name, parser), aliases });
}

/** The format of a name or alias. */
export function findToolFormat(name: string, formats = toolFormats): ToolFormat | undefined {
  return formats.find(name) ?? listToolFormats(formats).find(({ aliases }) => aliases.includes(name));
}

/** @throws ConfigError for a name that no format has. */
export function getToolFormat(name: string, formats = toolFormats): ToolFormat {
  return findToolFormat(name, formats) ?? formats.get(name);
}

/** Formats in the order in which they are tried on a call that a chat template prints. */
export function listToolFormats(formats = toolFormats): ToolFormat[] {
  const byName = formats.names().map((name) => formats.get(name));
  return byName.sort((a, b) => a.detectionRank - b.detectionRank);
}

/** @throws ConfigError for a name that no format has. */
export function resolveToolFormat(given: GivenToolFormat): ToolFormat {
  if (typeof given === "string") return getToolFormat(given);
  return typeof given === "function" ? formatOfParser("own", given) : given;
}

/**
 * The format that `multi_turn.format` means: a name, or the user's `module#export`, a parser or a whole format.
 * Relative modules start at `baseFolder`.
 * @throws ConfigError when there is none.
 */
export async function loadToolFormat(name: string, baseFolder: string, formats = toolFormats): Promise<ToolFormat> {
  if (!name.includes("#")) return getToolFormat(name, formats);
  const found = await importExport(name, baseFolder, "multi_turn.format");
  if (typeof found === "function") return formatOfParser(name, found as ToolParser);
  if (isObject(found) && "parse" in found)
    return defineToolFormat({ name, ...(found as Omit<ToolFormatParts, "name">) });
  throw new ConfigError("is not a parser of tool calls", {
    code: "config/bad-value",
    subject: `multi_turn.format "${name}"`,
    expected: "a function (text, tools) => ({ content, calls }), or a format: { parse, ... }",
    received: typeof found,
  });
}
