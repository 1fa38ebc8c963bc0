/** Formats of tool calls that have a parser here. */
export type BuiltInToolFormat =
  | "hermes"
  | "qwen3_coder"
  | "llama3_json"
  | "chatml-json"
  | "python"
  | "mistral"
  | "gpt_oss"
  | "deepseek_v3";

/** How a model writes tool calls: a built-in format, one that was registered, or "./module.ts#parse". */
export type ToolFormatName = BuiltInToolFormat | (string & {});
