import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageEncoder } from "@cria/core";
import { ImageIds } from "@cria/core/internal";
import { FakeTokenizer } from "@cria/core/testing";
import { ChatTemplate } from "../chat-template.js";
import { DeltaTokenizer } from "../delta-tokenizer.js";
import { readBundledTemplate } from "../testing/index.js";

/** A chat template of a vision model, and its family's text around images. */
export interface VisionTemplateCase {
  /** File in `models/templates` of the llama.cpp release, or in `fixtures/vision-templates`. */
  template: string;
  source: "release" | "published format";
  /** The template's own text of an image; "" if it has none. */
  imageText: string;
  /** Text before and after an image's vectors in llama.cpp's mtmd: one token each, or "". */
  around: readonly [before: string, after: string];
  /** Additional special tokens that the template prints. */
  added: readonly string[];
  ends: readonly string[];
  bos?: string;
  eos?: string;
}

const release = { source: "release" } as const;
const format = { source: "published format" } as const;
const qwen = {
  imageText: "<|vision_start|><|image_pad|><|vision_end|>",
  around: ["<|vision_start|>", "<|vision_end|>"],
  added: ["<|image_pad|>", "<think>", "</think>"],
  ends: ["<|im_end|>"],
} as const;
const mistral = {
  imageText: "[IMG]",
  around: ["", "[IMG_END]"],
  added:
    "[INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [ARGS] [CALL_ID] [THINK] [/THINK] [IMG] <s> </s>".split(
      " ",
    ),
  ends: ["</s>"],
  bos: "<s>",
  eos: "</s>",
} as const;
const chatml = { added: [], ends: ["<|im_end|>"] } as const;

export const visionTemplates: readonly VisionTemplateCase[] = [
  { ...release, ...qwen, template: "Qwen3.5-4B" },
  { ...release, ...mistral, template: "Mistral-Small-3.2-24B-Instruct-2506" },
  { ...release, ...mistral, template: "mistralai-Ministral-3-14B-Reasoning-2512" },
  {
    ...release,
    template: "google-gemma-4-31B-it",
    imageText: "<|image|>",
    around: ["<|image>", "<image|>"],
    added: ["<|turn>", "<turn|>", "<|tool_response>", "<tool_response|>", "<|tool_call>", "<tool_call|>", "<|image|>"],
    ends: ["<turn|>", "<|tool_response>"],
    bos: "<bos>",
  },
  {
    ...release,
    template: "LFM2.5-8B-A1B",
    imageText: "<image>",
    around: ["<|image_start|>", "<|image_end|>"],
    ...chatml,
  },
  {
    ...release,
    template: "Reka-Edge",
    imageText: "",
    around: ["<image>", "</image>"],
    added: ["<sep>", "<REKA_IMG_TOKEN>"],
    ends: ["<sep>"],
  },
  {
    ...release,
    template: "MiniMax-M3",
    imageText: "]<]image[>[",
    around: ["]<]start of image[>[", "]<]end of image[>["],
    added: [],
    ends: ["[e~["],
  },
  { ...format, ...qwen, template: "qwen2.5-vl" },
  { ...format, ...qwen, template: "qwen3-vl" },
  {
    ...format,
    template: "smolvlm",
    imageText: "<image>",
    around: ["<fake_token_around_image>", "<global-img>"],
    added: ["<image>", "<end_of_utterance>"],
    ends: ["<end_of_utterance>"],
  },
  { ...format, ...chatml, template: "internvl3", imageText: "", around: ["<img>", "</img>"] },
  { ...format, ...chatml, template: "internvl3-hf", imageText: "<IMG_CONTEXT>", around: ["<img>", "</img>"] },
  { ...format, ...chatml, template: "minicpm-v-2.6", imageText: "", around: ["<image>", "</image>"] },
  { ...format, ...mistral, template: "pixtral-12b" },
  {
    ...format,
    template: "llava-1.5-hf",
    imageText: "<image>",
    around: ["", ""],
    added: ["</s>"],
    ends: ["</s>"],
  },
  {
    ...format,
    template: "llava-1.5-vicuna",
    imageText: "",
    around: ["", ""],
    added: ["</s>"],
    ends: ["</s>"],
  },
];

export function readVisionTemplate({ template, source }: Pick<VisionTemplateCase, "template" | "source">): string {
  if (source === "release") return readBundledTemplate(template);
  return readFileSync(join(import.meta.dirname, "../../fixtures/vision-templates", `${template}.jinja`), "utf8");
}

/** Bytes are tokens, and an image has one vector for each square of 8 pixels. */
export function loadVisionCase(example: VisionTemplateCase): DeltaTokenizer {
  const { added, around, ends, bos = "", eos = "" } = example;
  const tokenizer = new FakeTokenizer([...new Set([...added, ...around, ...ends, bos])].filter((text) => text !== ""));
  const source = readVisionTemplate(example);
  return new DeltaTokenizer(new ChatTemplate(source, { bos_token: bos, eos_token: eos }), tokenizer, {
    bosToken: bos === "" ? null : tokenizer.idOf(bos),
    endOfTurnTokens: ends.map((text) => tokenizer.idOf(text)),
    images: makeStubImages(tokenizer, around),
  });
}

export function makeStubImages(
  tokenizer: FakeTokenizer,
  around: readonly [before: string, after: string],
): Pick<ImageEncoder, "place" | "countTokens"> {
  const ids = new ImageIds(tokenizer.vocabSize);
  const [before, after] = around.map((text) => (text === "" ? [] : [{ token: tokenizer.idOf(text) }]));
  const countVectors = (size: { width: number; height: number }) => Math.ceil((size.width * size.height) / 64);
  return {
    place: (image) =>
      ids.place(image, () => [...before!, { vectors: countVectors(image), columns: 0, rows: 0 }, ...after!]),
    countTokens: (size) => before!.length + countVectors(size) + after!.length,
  };
}
