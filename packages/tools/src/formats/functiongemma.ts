import { defineGemmaFormat } from "./gemma-format.js";

/** The format of FunctionGemma: `<start_function_call>call:name{key:<escape>text<escape>,other:1}<end_function_call>`. */
export const functiongemma = defineGemmaFormat("functiongemma", {
  open: "<start_function_call>",
  close: "<end_function_call>",
  string: "<escape>",
});
