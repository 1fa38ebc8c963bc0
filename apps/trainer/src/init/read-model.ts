import { ConfigError, EngineError, type ToolSchema } from "@cria/core";
import { type GgufHeader, loadModel, readGguf } from "@cria/engine";
import { checkTrainable } from "@cria/engine/internal";
import { isAddress } from "@cria/hub/internal";
import type { DatasetRow } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import {
  checkArgument,
  fetchModel,
  type ModelShape,
  probeModel,
  readModelShape,
  type TemplateAbilities,
} from "@cria/trainer/internal";

/** The properties of a model that a task depends on. */
export interface ReadModel extends TemplateAbilities {
  /** The config's name for it: an absolute path, or an address. */
  path: string;
  /** The name in the GGUF, else the file's. */
  name: string;
  shape: ModelShape;
  /** Tokens of the longest prompt among the rows, with its tools. */
  promptTokens: number;
  /** True if its chat template has a switch for thinking. */
  canThink: boolean;
}

/** Variables of the template, here and in the written config: thinking takes more tokens than a first task has. */
export const QUIET = { enable_thinking: false };

/**
 * Reads a model's header, and renders and tokenizes the prompts.
 * @param address a GGUF file, from the working directory, or an address of a hub.
 * @param prompts with their images in memory.
 * @param mmproj the model's projector, for prompts with images.
 * @throws EngineError or ConfigError when it cannot be read, trained, or used with tools.
 */
export async function readModel(
  address: string,
  prompts: readonly DatasetRow["prompt"][],
  tools: readonly ToolSchema[],
  mmproj?: string,
): Promise<ReadModel> {
  const path = await fetchModel(checkArgument("--model", address));
  const header = await readGguf(path);
  const shape = readModelShape(header);
  const refuse = (problem: string, expected?: string, received?: string, cause?: unknown) =>
    new ConfigError(problem, {
      code: "config/model-unfit",
      subject: address,
      expected,
      received,
      remedy: OTHER,
      cause,
    });
  await checkTrainable(path, CONTEXT).catch((error: unknown) => {
    if (!(error instanceof EngineError) || !error.code.startsWith("engine/unsupported-")) throw error;
    throw refuse(`cannot be trained: ${error.summary}`, error.expected, error.received, error);
  });
  const source = readText(header, "tokenizer.chat_template");
  if (source === null)
    throw refuse("has no chat template", "the key tokenizer.chat_template in the GGUF", "a model without it");
  const canThink = /\benable_thinking\b/.test(source);
  const model = await loadModel({
    path,
    ...(mmproj === undefined ? {} : { mmproj }),
    device: "cpu",
    contextSize: CONTEXT,
    maxSequences: 1,
    trainable: "none",
  });
  try {
    const tokenizer = DeltaTokenizer.forModel(model, { kwargs: canThink ? QUIET : {} });
    const abilities = probeModel(tokenizer);
    if (!abilities.showsAnswers)
      throw refuse("cannot use tools", "a chat template that prints the answers of tools", "one that does not");
    const promptTokens = Math.max(...prompts.map((prompt) => tokenizer.encodePrompt(prompt, tools).length));
    const name = readText(header, "general.name") ?? path;
    return { path: isAddress(address) ? address : path, name, shape, promptTokens, canThink, ...abilities };
  } finally {
    await model.dispose();
  }
}

/** Tokens that no prompt needs to fit into: prompts are only tokenized. */
const CONTEXT = 256;

const OTHER = "choose an instruction-tuned model of a trainable architecture, as Qwen2.5, Qwen3 or Llama 3";

function readText({ metadata }: GgufHeader, key: string): string | null {
  const value = metadata.get(key)?.value;
  return typeof value === "string" && value !== "" ? value : null;
}
