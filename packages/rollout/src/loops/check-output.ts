import { ConfigError, type ImageEncoder, type ModelInfo } from "@cria/core";
import { checkLayout, trajectorySchema } from "@cria/episodes";
import { readFields } from "@cria/episodes/internal";
import type { DatasetRow } from "../data/dataset-row.js";
import { describeData, keepRecord } from "../plain-data.js";
import type { AgentLoopOutput } from "./agent-loop.js";

export interface OutputLimits {
  /** The loop's name, for errors. */
  loop: string;
  row: DatasetRow;
  info: Pick<ModelInfo, "vocabSize" | "contextSize">;
  /** Left out: the model takes no images. */
  images?: Pick<ImageEncoder, "find">;
  /** Maximum number of tokens of the response. */
  responseLength: number;
  /** Maximum number of tokens of a conversation. */
  contextLength: number;
}

const outputSchema = trajectorySchema.partial({
  rolloutLogprobs: true,
  messages: true,
  finishReason: true,
  turnScores: true,
  toolRewards: true,
  score: true,
  toolScore: true,
  interactionScore: true,
  extraFields: true,
  turns: true,
  transitions: true,
});

/**
 * Checks the whole output of a user's agent loop, so that training never sees a wrong value. The result shares no
 * array with the output.
 * @throws ConfigError that names loop, row and field.
 */
export function checkOutput(given: unknown, limits: OutputLimits): AgentLoopOutput {
  const { loop, row, info, images, responseLength, contextLength } = limits;
  const refuse = (field: string, expected: string, received: unknown): never => {
    throw new ConfigError("returned something that cannot be trained on", {
      code: "config/bad-agent-loop",
      subject: `agent loop "${loop}", row ${row.index}, ${field || "output"}`,
      expected,
      received: typeof received === "string" ? received : describeData(received),
      remedy: "AgentLoopOutput of @cria/rollout says what a loop returns",
    });
  };
  const { extraFields = {}, ...output } = readFields(outputSchema, given, refuse);
  const { vocabSize } = info;
  const isVector = images && ((id: number) => id >= vocabSize && images.find(id) !== undefined);
  checkLayout(output, { vocabSize, isVector, responseLength, contextLength }, refuse);
  return { ...output, extraFields: keepRecord(extraFields) } as AgentLoopOutput;
}
