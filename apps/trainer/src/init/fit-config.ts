import { ConfigError } from "@cria/core";
import { trainConfigSchema } from "@cria/trainer";
import { checkConfig, estimateMemory, readAvailableMemory } from "@cria/trainer/internal";
import { QUIET, type ReadModel } from "./read-model.js";

/** The values of a config that depend on the model. Lengths in tokens. */
export interface ModelFit {
  promptLength: number;
  responseLength: number;
  toolResponseLength: number;
  /** Conversations at once. */
  maxNumSeqs: number;
  learningRate: number;
  /** `multi_turn.format`. */
  format: string;
  templateKwargs: Record<string, unknown>;
}

/** A first task's longest response, and the shortest that leaves room for a call and an answer. */
const LONGEST = 1024;
const SHORTEST = 64;
/** Tokens by which prompts of the user's rows may exceed the measured ones. */
const HEADROOM = 256;
/** Models with fewer parameters are toys that tolerate large steps; LoRA on real ones needs smaller ones. */
const TOY = 10e6;
const CONVERSATIONS = [64, 32, 16, 8, 4, 2, 1];
/** Share of the memory that is available now. */
const SHARE = 0.7;

/**
 * Chooses lengths, tool format, learning rate and parallelism for a model and the measured prompts.
 * @param available memory in bytes.
 * @throws ConfigError when the model's context has no room for a response.
 */
export function fitConfig(model: ReadModel, available = readAvailableMemory()): ModelFit {
  const { shape, promptTokens } = model;
  const room = shape.contextLength - promptTokens;
  if (room < SHORTEST) {
    throw new ConfigError("leave no room for a response", {
      code: "config/prompt-too-long",
      subject: `the tools' schemas and the prompt: ${promptTokens} tokens of ${model.name}`,
      expected: `at most ${shape.contextLength - SHORTEST}: its context has ${shape.contextLength}`,
      remedy: "name the tools that the task needs, as --tools a,b, or choose a --model with a longer context",
    });
  }
  const promptLength = promptTokens + Math.min(HEADROOM, Math.floor(room / 4));
  const responseLength = Math.min(LONGEST, shape.contextLength - promptLength);
  const lengths = { promptLength, responseLength };
  return {
    ...lengths,
    toolResponseLength: Math.min(256, Math.floor(responseLength / 4)),
    maxNumSeqs: CONVERSATIONS.find((count) => needMemory(model, lengths, count) <= SHARE * available) ?? 1,
    learningRate: shape.parameters < TOY ? 1.5e-3 : 5e-5,
    format: model.format ?? "hermes",
    templateKwargs: model.canThink ? QUIET : {},
  };
}

function needMemory(
  { shape, path }: ReadModel,
  lengths: Pick<ModelFit, "promptLength" | "responseLength">,
  conversations: number,
): number {
  const config = {
    actor_rollout_ref: {
      model: { path, lora_rank: 16 },
      rollout: {
        prompt_length: lengths.promptLength,
        response_length: lengths.responseLength,
        max_num_seqs: conversations,
      },
    },
    data: { train_files: "train.jsonl" },
  };
  const items = estimateMemory(shape, checkConfig(trainConfigSchema, config, "config"));
  return items.reduce((sum, { bytes }) => sum + bytes, 0);
}
