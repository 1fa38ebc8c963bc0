import { defineGemmaFormat } from "./gemma-format.js";

/** The format of Gemma 4: `<|tool_call>call:name{key:<|"|>text<|"|>,other:1}<tool_call|>`. */
export const gemma4 = defineGemmaFormat("gemma4", { open: "<|tool_call>", close: "<tool_call|>", string: '<|"|>' });
