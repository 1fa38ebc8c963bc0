import { type ChatMessage, hasFailed, type PolicyEngine, type RequestState, type Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { copyData } from "../copy-data.js";
import type { DatasetRow } from "../data/dataset-row.js";
import { findImages } from "../images/find-images.js";
import type { AgentLoopOutput } from "./agent-loop.js";
import type { StateLog } from "./state-log.js";

interface RecordOptions {
  row: DatasetRow;
  sampleIndex: number;
  request: StateLog<RequestState>;
  engine: Pick<PolicyEngine, "score" | "detokenize" | "images" | "info">;
  /** Sampling temperature. */
  temperature: number;
}

/** A loop's output; `ownLoop` as in `Trajectory`. */
export type LoopOutput = AgentLoopOutput & Pick<Trajectory, "ownLoop">;

/** Turns a loop's output into a trajectory. The policy computes values that the loop left out. */
export async function recordTrajectory(
  output: LoopOutput,
  { row, sampleIndex, request, engine, temperature }: RecordOptions,
): Promise<UnjudgedTrajectory> {
  const { promptLength, numTurns, turnScores, toolRewards, segments, toolSchemas, scoreError, error } = output;
  const { finishReason = "stop" } = output;
  const tokenIds = asTyped(Int32Array, output.tokenIds);
  // A failed conversation is not trained on.
  const responseMask = error === undefined ? asTyped(Uint8Array, output.responseMask) : new Uint8Array(tokenIds.length);
  const metrics = { ...output.metrics };
  const sampled = { tokenIds, promptLength, responseMask };
  const messages = output.messages ?? [...copyData(row.prompt), ...readTurns(sampled, engine)];
  const rolloutLogprobs = output.rolloutLogprobs
    ? maskValues(asTyped(Float32Array, output.rolloutLogprobs), responseMask)
    : await scoreSampled(sampled, metrics, engine, temperature);
  const ended = !hasFailed({ finishReason, error });
  request.enter(ended ? "completed" : "failed");
  if (error !== undefined) metrics.failed = 1;
  // Without a trained token, no reward can be placed.
  const counts = ended && responseMask.includes(1);
  const images = findImages(tokenIds, engine);
  return {
    rowIndex: row.index,
    uid: row.uid,
    sampleIndex,
    dataSource: row.dataSource,
    ...sampled,
    ...(output.ownLoop ? { ownLoop: true } : {}),
    ...(images.length > 0 ? { images } : {}),
    rolloutLogprobs,
    messages,
    ...(segments ? { segments } : {}),
    ...(toolSchemas ? { toolSchemas } : {}),
    finishReason,
    numTurns,
    turnScores: (counts && turnScores) || [],
    toolRewards: (counts && toolRewards) || [],
    metrics,
    extraFields: output.extraFields ?? {},
    score: output.score ?? null,
    toolScore: output.toolScore ?? null,
    interactionScore: output.interactionScore ?? null,
    ...(scoreError === undefined ? {} : { scoreError }),
    ...(error === undefined ? {} : { error }),
    timeline: { loop: output.transitions ?? [], request: request.transitions, turns: output.turns ?? [] },
  };
}

function asTyped<T extends Int32Array | Uint8Array | Float32Array>(
  Kind: new (values: ArrayLike<number>) => T,
  values: ArrayLike<number>,
): T {
  return values instanceof Kind ? values : new Kind(values);
}

type Sampled = Pick<UnjudgedTrajectory, "tokenIds" | "promptLength" | "responseMask">;

/**
 * Scores the sampled tokens with the policy. This equals the sampler's log-probabilities, because weights do not
 * change while conversations run. A model that cannot score (it is not trained) leaves them 0.
 */
async function scoreSampled(
  { tokenIds, promptLength, responseMask }: Sampled,
  metrics: Record<string, number>,
  engine: RecordOptions["engine"],
  temperature: number,
): Promise<Float32Array> {
  const sampled = responseMask.reduce((sum, bit) => sum + bit, 0);
  if (sampled > 0) metrics.rescored_tokens = sampled;
  if (sampled === 0 || engine.info.trainable === "none") return new Float32Array(tokenIds.length);
  // Greedy sampling reports log-probabilities at temperature 1.
  const options = { temperature: temperature === 0 ? 1 : temperature };
  const [scored] = await engine.score([{ tokenIds, from: Math.max(1, promptLength) }], options);
  return maskValues(scored!.logprobs.slice(), responseMask);
}

/** Sets values to 0 where the mask is 0. */
function maskValues(values: Float32Array, mask: Uint8Array): Float32Array {
  for (let t = 0; t < mask.length; t++) if (mask[t] === 0) values[t] = 0;
  return values;
}

/** Each stretch of sampled tokens as an assistant's message, without the end-of-turn token. */
function readTurns(
  { tokenIds, responseMask }: Sampled,
  engine: Pick<PolicyEngine, "detokenize" | "info">,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (let start = responseMask.indexOf(1); start >= 0; ) {
    const next = responseMask.indexOf(0, start);
    const end = next < 0 ? responseMask.length : next;
    const ended = engine.info.endOfGenerationTokens.includes(tokenIds[end - 1]!);
    messages.push({
      role: "assistant",
      content: engine.detokenize(tokenIds.subarray(start, ended ? end - 1 : end)),
    });
    start = next < 0 ? -1 : responseMask.indexOf(1, next);
  }
  return messages;
}
