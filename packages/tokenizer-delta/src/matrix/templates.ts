/** A template of the llama.cpp release, the vocabulary that it is tested with, and its ends of turns. */
export interface TemplateCase {
  /** File in `models/templates`, or "cria-tiny" for the embedded policy's own. */
  template: string;
  /** `models/ggml-vocab-*.gguf`. */
  vocabulary: string;
  /** True if it is the model's own vocabulary; otherwise it is the nearest one in the release. */
  own: boolean;
  /** Special tokens that the template prints and the vocabulary lacks. */
  added?: readonly string[];
  /** Texts of the tokens that end a turn. */
  ends: readonly string[];
  bos?: string;
  eos?: string;
  kwargs?: Record<string, unknown>;
}

const chatml = ["<|im_start|>", "<|im_end|>"];
const qwen = { own: true, vocabulary: "qwen2", ends: ["<|im_end|>"], bos: "", eos: "<|im_end|>" };
const think = ["<think>", "</think>"];
const qwenTools = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];
const llama3 = {
  own: true,
  vocabulary: "llama-bpe",
  added: ["<|python_tag|>", "<|eom_id|>"],
  ends: ["<|eot_id|>", "<|eom_id|>"],
  bos: "<|begin_of_text|>",
  eos: "<|eot_id|>",
  kwargs: { date_string: "26 Jul 2024" },
};
const mistral = {
  own: false,
  added: [
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[ARGS]",
    "[CALL_ID]",
    "[TOOL_CONTENT]",
    "[THINK]",
    "[/THINK]",
  ],
  ends: ["</s>"],
  bos: "<s>",
  eos: "</s>",
};
const gemma4 = {
  own: true,
  vocabulary: "gemma-4",
  ends: ["<turn|>", "<|tool_response>"],
  bos: "<bos>",
  eos: "<turn|>",
};
const deepseek = {
  added: [
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
    "｜DSML｜",
    ...think,
  ],
  ends: ["<｜end▁of▁sentence｜>"],
  bos: "<｜begin▁of▁sentence｜>",
  eos: "<｜end▁of▁sentence｜>",
};

/** Stands in for a vocabulary that the release lacks: a byte-level BPE with all that the family's template prints. */
const near = { own: false, vocabulary: "qwen2", bos: "", ends: ["<|im_end|>"], eos: "<|im_end|>" };
const lfm2 = {
  ...near,
  added: ["<|startoftext|>", "<|tool_call_start|>", "<|tool_call_end|>", ...think],
  bos: "<|startoftext|>",
};
const granite = {
  ...near,
  added: ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>", ...qwenTools],
  ends: ["<|end_of_text|>"],
  eos: "<|end_of_text|>",
};
const glm = {
  ...near,
  added: [
    ...["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
    ...["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ...qwenTools, ...think],
  ],
  ends: ["<|user|>", "<|observation|>"],
};

export const templateCases: readonly TemplateCase[] = [
  { ...qwen, template: "cria-tiny", own: false },
  { ...qwen, template: "Qwen-Qwen2.5-7B-Instruct", added: qwenTools.slice(0, 2) },
  { ...qwen, template: "Qwen-Qwen3-0.6B", added: [...qwenTools, ...think] },
  { ...qwen, template: "Qwen-QwQ-32B", added: [...qwenTools, ...think], kwargs: { enable_thinking: true } },
  { ...qwen, template: "Qwen3-Coder", added: [...qwenTools, ...think] },
  { ...qwen, template: "Qwen3.5-4B", vocabulary: "qwen35", added: [...qwenTools, ...think] },
  { ...llama3, template: "meta-llama-Llama-3.1-8B-Instruct" },
  { ...llama3, template: "meta-llama-Llama-3.2-3B-Instruct" },
  { ...llama3, template: "meta-llama-Llama-3.3-70B-Instruct" },
  {
    ...llama3,
    template: "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    added: chatml,
    ends: ["<|im_end|>"],
    eos: "<|im_end|>",
  },
  { ...mistral, template: "mistralai-Mistral-Nemo-Instruct-2407", vocabulary: "llama-bpe" },
  { ...mistral, template: "mistralai-Mistral-Nemo-Instruct-2407", vocabulary: "llama-spm" },
  { ...mistral, template: "Mistral-Small-3.2-24B-Instruct-2506", vocabulary: "llama-bpe" },
  { ...mistral, template: "unsloth-mistral-Devstral-Small-2507", vocabulary: "llama-bpe" },
  { ...mistral, template: "mistralai-Ministral-3-14B-Reasoning-2512", vocabulary: "llama-bpe" },
  {
    template: "google-gemma-2-2b-it",
    vocabulary: "gemma-4",
    own: false,
    added: ["<start_of_turn>", "<end_of_turn>"],
    ends: ["<end_of_turn>"],
    bos: "<bos>",
    eos: "<eos>",
  },
  { ...gemma4, template: "google-gemma-4-31B-it" },
  { ...gemma4, template: "google-gemma-4-31B-it-interleaved" },
  { ...deepseek, template: "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", vocabulary: "llama-bpe", own: true },
  { ...deepseek, template: "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", vocabulary: "qwen2", own: true },
  { ...deepseek, template: "llama-cpp-deepseek-r1", vocabulary: "deepseek-llm", own: false },
  { ...deepseek, template: "deepseek-ai-DeepSeek-V3.1", vocabulary: "deepseek-llm", own: false },
  { ...deepseek, template: "deepseek-ai-DeepSeek-V3.2", vocabulary: "deepseek-llm", own: false },
  { ...deepseek, template: "deepseek-ai-DeepSeek-V4", vocabulary: "deepseek-llm", own: false },
  {
    template: "openai-gpt-oss-120b",
    vocabulary: "llama-bpe",
    own: false,
    added: ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"],
    ends: ["<|return|>", "<|call|>"],
    bos: "<|startoftext|>",
    eos: "<|return|>",
  },
  { ...lfm2, template: "LFM2-8B-A1B" },
  { ...lfm2, template: "LFM2.5-8B-A1B" },
  { ...lfm2, template: "LFM2.5-Instruct" },
  { ...near, template: "HuggingFaceTB-SmolLM3-3B", added: think },
  { ...granite, template: "ibm-granite-granite-3.3-2B-Instruct" },
  { ...granite, template: "ibm-granite-granite-4.0" },
  { ...granite, template: "ibm-granite-granite-4.1" },
  { ...glm, template: "GLM-4.6" },
  { ...glm, template: "GLM-4.7-Flash" },
  {
    ...near,
    template: "ByteDance-Seed-OSS",
    added: ["<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"],
    ends: ["<seed:eos>"],
    bos: "<seed:bos>",
    eos: "<seed:eos>",
  },
  {
    ...near,
    template: "MiniMax-M2",
    added: ["]~!b[", "]~b]", "[e~[", "<minimax:tool_call>", "</minimax:tool_call>", ...think],
    ends: ["[e~["],
    eos: "[e~[",
  },
  {
    ...near,
    template: "MiniMax-M3",
    added: ["]~!b[", "]~b]", "[e~[", "]<]minimax[>[", "<mm:think>", "</mm:think>"],
    ends: ["[e~["],
    eos: "[e~[",
  },
  {
    ...near,
    template: "Kimi-K3",
    added: ["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"],
    ends: ["<|end_of_msg|>"],
    eos: "<|end_of_msg|>",
  },
  {
    ...near,
    template: "Apertus-8B-Instruct",
    added: [
      ...["<|system_start|>", "<|system_end|>", "<|developer_start|>", "<|developer_end|>"],
      ...["<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>"],
      ...["<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"],
    ],
    ends: ["<|assistant_end|>", "<|tools_suffix|>"],
    eos: "<|assistant_end|>",
  },
  {
    ...near,
    template: "moonshotai-Kimi-K2",
    added: [
      ...["<|im_system|>", "<|im_middle|>", "<|im_user|>", "<|im_assistant|>"],
      ...["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
      ...["<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"],
    ],
  },
];
