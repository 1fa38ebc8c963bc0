import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";

/** Special tokens of a template's model, and the properties of its turns. */
export interface ToolTemplateCase {
  format: string;
  /** Another framework's or family's name for the format. */
  alias?: string;
  ends: readonly string[];
  /** Special tokens other than the ends of turns. */
  added: readonly string[];
  /** Tags of its thoughts, if it has them. */
  thinks?: readonly [open: string, close: string];
  /** The beginning of a text that is said behind thoughts. Default: empty. */
  opensText?: string;
  /** Text that its calls cannot contain. */
  without?: string;
  /** False if it prints texts and numbers alike and leaves out null: the schema must say what a value is. */
  statesTypes?: false;
  /** False if it prints calls otherwise than the grammar writes them: keys in another order, other spaces, ids, words of Python. */
  printsGrammar?: false;
  /** False if the template prints no calls. */
  printsCalls?: false;
  /** False if it prints only one of text and calls, when a message has both. */
  printsBoth?: false;
  /** True if a call with nothing in the place of its arguments is one without arguments. */
  takesNothing?: true;
  /** False if a turn has at most one call. */
  takesSeveral?: false;
  /** False if it does not list the tools. */
  listsTools?: false;
}

const folder = join(import.meta.dirname, "..", "..", "..", "tokenizer-delta", "fixtures", "tool-templates");
const think = ["<think>", "</think>"] as const;
const short: Record<string, ToolTemplateCase> = {
  "deepseek-v3.1": {
    format: "deepseek_v3",
    ends: ["<｜end▁of▁sentence｜>"],
    added: [
      "<｜User｜>",
      "<｜Assistant｜>",
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      ...think,
    ],
    thinks: think,
  },
  "deepseek-v3.2": {
    format: "deepseek_v32",
    alias: "deepseek_v4",
    ends: ["<｜end▁of▁sentence｜>"],
    added: ["<｜User｜>", "<｜Assistant｜>", "｜DSML｜", "<｜tool▁calls▁begin｜>", ...think],
    thinks: think,
    without: "</｜DSML｜parameter>",
  },
  functiongemma: {
    format: "functiongemma",
    ends: ["<end_of_turn>", "<start_function_response>"],
    added: ["<start_of_turn>", "<start_function_call>", "<end_function_call>", "<end_function_response>", "<escape>"],
    without: "<escape>",
    printsGrammar: false,
  },
  gemma4: {
    format: "gemma4",
    ends: ["<turn|>", "<|tool_response>"],
    added: ["<|turn>", "<|tool_call>", "<tool_call|>", "<tool_response|>", "<|channel>", "<channel|>", '<|"|>'],
    thinks: ["<|channel>thought", "<channel|>"],
    without: '<|"|>',
    printsGrammar: false,
  },
  "gemma3-pythonic": { format: "pythonic", ends: ["<end_of_turn>"], added: ["<start_of_turn>"] },
  "glm-4.5": {
    format: "glm45",
    alias: "glm46",
    ends: ["<|user|>", "<|observation|>"],
    added: ["<|assistant|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    thinks: think,
    without: "</arg_value>",
  },
  "glm-4.7": {
    format: "glm45",
    alias: "glm47",
    ends: ["<|user|>", "<|observation|>"],
    added: ["<|assistant|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    thinks: think,
    without: "</arg_value>",
  },
  "granite-3": { format: "granite", ends: ["<|end_of_text|>"], added: ["<|start_of_role|>", "<|tool_call|>"] },
  "granite-3-no-calls": {
    format: "granite",
    ends: ["<|end_of_text|>"],
    added: ["<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"],
    printsCalls: false,
  },
  "granite-4": {
    format: "hermes",
    alias: "granite4",
    ends: ["<|end_of_text|>"],
    added: ["<|start_of_role|>", "<tool_call>", "</tool_call>"],
  },
  "kimi-k2": {
    format: "kimi_k2",
    ends: ["<|im_end|>"],
    added: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"],
    thinks: think,
  },
  lfm2: {
    format: "pythonic",
    alias: "lfm2",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>", ...think],
    thinks: think,
  },
  "lfm2-no-calls": {
    format: "pythonic",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>"],
    printsCalls: false,
  },
  "minimax-m2": {
    format: "minimax_m2",
    ends: ["[e~["],
    added: ["]~b]", "<minimax:tool_call>", "</minimax:tool_call>", ...think],
    thinks: think,
    without: "</parameter>",
  },
  "ministral-3": {
    format: "mistral",
    ends: ["</s>"],
    added: ["[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"],
    thinks: ["[THINK]", "[/THINK]"],
  },
  "phi-4-mini": {
    format: "granite",
    alias: "phi4_mini",
    ends: ["<|end|>"],
    added: ["<|user|>", "<|assistant|>", "<|tool_call|>", "<|/tool_call|>", "<|tool_response|>"],
  },
  "seed-oss": {
    format: "qwen3_coder",
    alias: "seed_oss",
    ends: ["<seed:eos>"],
    added: ["<seed:bos>", "<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"],
    thinks: ["<seed:think>", "</seed:think>"],
    printsGrammar: false,
    without: "</parameter>",
  },
  smollm3: {
    format: "hermes",
    alias: "smollm3",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<tool_call>", "</tool_call>", ...think],
    thinks: think,
  },
  "smollm3-no-calls": {
    format: "hermes",
    alias: "smollm3",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<tool_call>", "</tool_call>", ...think],
    printsCalls: false,
  },
};

const qwen3Coder = {
  format: "qwen3_coder",
  alias: undefined,
  without: "</parameter>",
  printsGrammar: false,
} satisfies Partial<ToolTemplateCase>;

/**
 * Templates as the families published them, which the llama.cpp release has (github.com/ggml-org/llama.cpp, models/templates): each with the
 * short template whose tokens it has, and what differs.
 */
const published: Record<string, [like: string, differences?: Partial<ToolTemplateCase>]> = {
  "meta-llama-Llama-3.1-8B-Instruct": ["llama-3"],
  "meta-llama-Llama-3.2-3B-Instruct": ["llama-3"],
  "ByteDance-Seed-OSS": ["seed-oss"],
  "GLM-4.6": ["glm-4.5"],
  "GLM-4.7-Flash": ["glm-4.7"],
  "Kimi-K2-Instruct": ["kimi-k2"],
  "Kimi-K2-Thinking": ["kimi-k2"],
  "Kimi-K3": ["kimi-k3"],
  "tencent-Hy3": ["hy3"],
  "upstage-Solar-Open-100B": ["solar-open"],
  "LFM2-8B-A1B": ["lfm2-no-calls"],
  "LFM2.5-8B-A1B": ["lfm2", { without: "\\", printsGrammar: false }],
  "LFM2.5-Instruct": ["lfm2-no-calls"],
  "Apertus-8B-Instruct": ["apertus"],
  "Apriel-1.6-15b-Thinker-fixed": ["apriel", { printsGrammar: false }],
  "unsloth-Apriel-1.5": ["apriel"],
  "MiniMax-M1": ["apriel", { alias: "minimax_m1", ends: ["<end_of_sentence>"], printsBoth: false }],
  "NVIDIA-Nemotron-Nano-v2": ["apriel", { alias: "nemotron_v2", ends: ["<SPECIAL_12>"] }],
  Cohere2MoE: ["cohere"],
  // It prints a generation prompt behind every turn.
  "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ["cohere", { thinks: undefined, printsGrammar: false }],
  "MiniMax-M2": ["minimax-m2"],
  "MiniMax-M3": ["minimax-m3"],
  "Mistral-Small-3.2-24B-Instruct-2506": ["ministral-3", { printsBoth: false, printsGrammar: false }],
  "deepseek-ai-DeepSeek-V3.1": ["deepseek-v3.1", { listsTools: false }],
  "deepseek-ai-DeepSeek-V3.2": ["deepseek-v3.2"],
  "deepseek-ai-DeepSeek-V4": ["deepseek-v3.2", { printsGrammar: false }],
  "deepseek-ai-DeepSeek-V4-Flash-0731": ["deepseek-v3.2", { printsGrammar: false }],
  "Qwen-Qwen2.5-7B-Instruct": ["smollm3", { thinks: undefined, alias: undefined }],
  "Qwen-Qwen3-0.6B": ["smollm3", { alias: undefined }],
  "Qwen3-Coder": ["smollm3", { ...qwen3Coder, thinks: undefined }],
  "Qwen3.5-4B": ["smollm3", qwen3Coder],
  "google-gemma-4-31B-it": ["gemma4", { printsBoth: false }],
  "ibm-granite-granite-3.3-2B-Instruct": ["granite-3-no-calls"],
  "ibm-granite-granite-4.0": ["granite-4"],
  "ibm-granite-granite-4.1": ["granite-4"],
  "llama-cpp-deepseek-r1": ["deepseek-v3.1", { printsBoth: false }],
  "mistralai-Ministral-3-14B-Reasoning-2512": ["ministral-3"],
  "mistralai-Mistral-Nemo-Instruct-2407": ["ministral-3", { printsBoth: false, printsGrammar: false }],
  "moonshotai-Kimi-K2": ["kimi-k2"],
  "openai-gpt-oss-120b": ["gpt-oss"],
};

/** Families without a short template. */
const others: Record<string, ToolTemplateCase> = {
  "llama-3": {
    format: "llama3_json",
    ends: ["<|eot_id|>", "<|eom_id|>"],
    added: ["<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"],
    printsBoth: false,
    takesSeveral: false,
  },
  apertus: {
    format: "apertus",
    ends: ["<|tools_suffix|>", "<|assistant_end|>"],
    added: ["<|assistant_start|>", "<|tools_prefix|>", "<|inner_prefix|>", "<|inner_suffix|>"],
    thinks: ["<|inner_prefix|>", "<|inner_suffix|>"],
  },
  apriel: { format: "apriel", ends: ["<|end|>"], added: ["<|assistant|>", "<tool_calls>", "</tool_calls>"] },
  cohere: {
    format: "cohere",
    alias: "command_r7b",
    ends: ["<|END_OF_TURN_TOKEN|>"],
    added: [
      ...["<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>"],
      ...["<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"],
      ...["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
    ],
    thinks: ["<|START_THINKING|>", "<|END_THINKING|>"],
    printsBoth: false,
  },
  hy3: {
    format: "hy3",
    ends: ["<｜hy_eos:opensource｜>"],
    added: [
      ...["<｜hy_User:opensource｜>", "<｜hy_Assistant:opensource｜>", "<think:opensource>", "</think:opensource>"],
      ...["tool_calls", "tool_call", "arg_key", "arg_value"].flatMap((tag) => [
        `<${tag}:opensource>`,
        `</${tag}:opensource>`,
      ]),
      "<tool_sep:opensource>",
    ],
    thinks: ["<think:opensource>", "</think:opensource>"],
    without: "</arg_value:opensource>",
  },
  "solar-open": {
    format: "solar_open",
    ends: ["<|calls|>", "<|end|>"],
    added: [
      ...["<|begin|>", "<|content|>", "<|think|>", "<|tool_calls|>", "<|tool_call:begin|>", "<|tool_call:name|>"],
      ...["<|tool_call:args|>", "<|tool_call:end|>"],
    ],
    thinks: ["<|think|>", "<|end|>"],
    printsBoth: false,
  },
  "gpt-oss": {
    format: "gpt_oss",
    alias: "openai",
    ends: ["<|call|>", "<|return|>"],
    added: ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>"],
    thinks: ["<|channel|>analysis<|message|>", "<|end|>"],
    opensText: "<|start|>assistant<|channel|>final<|message|>",
    printsGrammar: false,
    printsBoth: false,
    takesNothing: true,
    takesSeveral: false,
  },
  "kimi-k3": {
    format: "kimi_k3",
    ends: ["<|end_of_msg|>"],
    added: ["<|open|>", "<|close|>", "<|sep|>"],
    thinks: ["<|open|>think<|sep|>", "<|close|>think<|sep|>"],
    without: "<|close|>argument<|sep|>",
  },
  "minimax-m3": {
    format: "minimax_m3",
    ends: ["[e~["],
    added: ["]~!b[", "]~b]", "]<]minimax[>[", "<mm:think>", "</mm:think>"],
    thinks: ["<mm:think>", "</mm:think>"],
    without: "]<]minimax[>[",
    statesTypes: false,
  },
};

/** By the template's name: short ones of our own, in which calls and answers stand as each family's do, and published ones. */
export const toolTemplateCases: Readonly<Record<string, ToolTemplateCase>> = {
  ...short,
  ...Object.fromEntries(
    Object.entries(published).map(([name, [like, differences]]) => [
      name,
      { ...(short[like] ?? others[like])!, ...differences },
    ]),
  ),
};

/** Names of the short templates. */
export const shortTemplates = Object.keys(short);

export function readToolTemplate(name: string): string {
  return name in published ? readBundledTemplate(name) : readFileSync(join(folder, `${name}.jinja`), "utf8");
}
