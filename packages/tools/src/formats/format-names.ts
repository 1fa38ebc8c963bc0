// Only the names: a task definition checks a format's name without loading the grammars.

const builtIn = [
  "hermes",
  "qwen3_coder",
  "llama3_json",
  "chatml-json",
  "python",
  "mistral",
  "gpt_oss",
  "deepseek_v3",
  "glm45",
  "kimi_k2",
  "kimi_k3",
  "minimax_m2",
  "minimax_m3",
  "deepseek_v32",
  "granite",
  "pythonic",
  "functiongemma",
  "gemma4",
  "cohere",
  "apertus",
  "hy3",
  "solar_open",
  "apriel",
] as const;

/** Built-in formats of tool calls. */
export type BuiltInToolFormat = (typeof builtIn)[number];

/** The format of a model's tool calls: a built-in format, a registered one, or "./module.ts#parse". */
export type ToolFormatName = BuiltInToolFormat | (string & {});

/** Other frameworks' names for some of them. */
const otherNames = [
  "gpt-oss",
  "openai",
  "deepseek_v31",
  "granite4",
  "smollm3",
  "seed_oss",
  "glm46",
  "glm47",
  "deepseek_v4",
  "phi4_mini",
  "lfm2",
  "command_r7b",
  "nemotron_v2",
  "minimax_m1",
];
const known = new Set<string>([...builtIn, ...otherNames]);

/** Formats that programs registered beside the built-in ones, with their aliases. */
export const registeredFormatNames = new Map<string, readonly string[]>();

/** Formats that every run has, in the order of registration. */
export function listToolFormatNames(): string[] {
  return [...new Set([...builtIn, ...registeredFormatNames.keys()])];
}

/** True if every run has a format of this name or alias. */
export function isToolFormatName(name: string): boolean {
  return known.has(name) || [...registeredFormatNames].some(([own, aliases]) => own === name || aliases.includes(name));
}

export function addToolFormatName(name: string, aliases: readonly string[]): void {
  registeredFormatNames.set(name, aliases);
}
