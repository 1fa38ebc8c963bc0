import type { PolicyEngine, PolicySequence, Trajectory } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool } from "@cria/tools";
import { type AgentLoopOutput, getAgentLoop, type MultiTurnOptions } from "./agent-loop.js";
import type { DatasetRow } from "./dataset-row.js";
import { fitPrompt, type Truncation } from "./fit-prompt.js";
import { hashSeed } from "./hash-seed.js";
import type { RewardFunction } from "./reward.js";
import { Semaphore } from "./semaphore.js";
import { listToolSchemas } from "./tool-agent-loop.js";

export interface RolloutOptions {
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  reward: RewardFunction;
  /** Samples of each row. */
  n: number;
  temperature: number;
  topP: number;
  topK: number;
  /** With `step`, row and sample it decides every random draw. */
  seed: number;
  step: number;
  maxPromptLength: number;
  responseLength: number;
  truncation: Truncation;
  defaultAgentLoop: string;
  /** Weights of the reward's parts. */
  weights: { trajectory: number; tool: number };
  /** Conversations at once. Default: as many as fit into the KV cache. */
  concurrency?: number;
  signal?: AbortSignal;
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** Runs `n` conversations for each row, all at once; results are ordered by (row, sample), whatever finished first. */
export async function runRollouts(
  engine: PolicyEngine,
  rows: readonly DatasetRow[],
  options: RolloutOptions,
): Promise<Trajectory[]> {
  const slots = new Semaphore(options.concurrency ?? engine.info.maxSequences);
  const groups = rows.map((row) => runGroup(engine, row, slots, options));
  // Every conversation ends before an error is reported: nothing goes on in the background.
  const settled = await Promise.allSettled(groups);
  for (const result of settled) if (result.status === "rejected") throw result.reason;
  return settled.flatMap((result) => (result as PromiseFulfilledResult<Trajectory[]>).value);
}

async function runGroup(
  engine: PolicyEngine,
  row: DatasetRow,
  slots: Semaphore,
  options: RolloutOptions,
): Promise<Trajectory[]> {
  // Queue for all places first, so that a group's samples run together and its prompt is still in the cache.
  const places = Array.from({ length: options.n }, () => slots.acquire());
  let root: Promise<PolicySequence> | undefined;
  let promptIds = new Int32Array(0);
  let waiting = options.n;
  const prepare = async () => {
    const ids = options.tokenizer.encodePrompt(row.prompt, listToolSchemas(options, row));
    promptIds = fitPrompt(
      ids,
      options.maxPromptLength,
      options.truncation,
      `row ${row.index}`,
    ) as Int32Array<ArrayBuffer>;
    const sequence = engine.createSequence();
    try {
      await sequence.prefill(promptIds, { signal: options.signal });
    } catch (error) {
      sequence.dispose();
      throw error;
    }
    return sequence;
  };
  const samples = places.map(async (place, sampleIndex) => {
    await place;
    let sequence: PolicySequence | undefined;
    try {
      options.signal?.throwIfAborted();
      root ??= prepare();
      const prompt = await root;
      // The last sample takes the root itself: nothing is copied for a group of one.
      sequence = --waiting > 0 ? prompt.fork() : prompt;
      const output = await runLoop(engine, row, sampleIndex, sequence, promptIds, options);
      const trajectory = await finishTrajectory(row, sampleIndex, output, options);
      options.onTrajectory?.(trajectory);
      return trajectory;
    } finally {
      sequence?.dispose();
      slots.release();
    }
  });
  const settled = await Promise.allSettled(samples);
  // A failure before all forks were made leaves the root without an owner.
  if (waiting > 0) (await root?.catch(() => undefined))?.dispose();
  for (const result of settled) if (result.status === "rejected") throw result.reason;
  return settled.map((result) => (result as PromiseFulfilledResult<Trajectory>).value);
}

function runLoop(
  engine: PolicyEngine,
  row: DatasetRow,
  sampleIndex: number,
  sequence: PolicySequence,
  promptIds: Int32Array,
  options: RolloutOptions,
): Promise<AgentLoopOutput> {
  const loop = getAgentLoop(row.agentName ?? options.defaultAgentLoop)({
    engine,
    tokenizer: options.tokenizer,
    tools: options.tools,
    multiTurn: options.multiTurn,
    responseLength: Math.min(options.responseLength, engine.info.contextSize - promptIds.length),
    sequence,
    promptIds,
    signal: options.signal,
  });
  const seed = hashSeed(options.seed, options.step, row.uid, sampleIndex);
  return loop.run({ temperature: options.temperature, topP: options.topP, topK: options.topK, seed }, row);
}

async function finishTrajectory(
  row: DatasetRow,
  sampleIndex: number,
  output: AgentLoopOutput,
  options: RolloutOptions,
): Promise<Trajectory> {
  const promptLength = output.promptIds.length;
  const total = promptLength + output.responseIds.length;
  const solution = output.messages
    .slice(row.prompt.length)
    .filter((m) => m.role === "assistant")
    .map((m) => m.content)
    .join("\n");
  const judged = await options.reward(row.dataSource, solution, row.groundTruth, {
    ...row.extraInfo,
    messages: output.messages,
    numTurns: output.numTurns,
  });
  const { score, ...extra } = typeof judged === "number" ? { score: judged } : judged;
  const place = <T extends { tokenIndex: number }>(entry: T): T => ({
    ...entry,
    tokenIndex: promptLength + entry.tokenIndex,
  });
  const toolRewards = output.toolRewards.map(place);
  const sampled = output.responseMask.includes(1);
  const padded = <T extends Int32Array | Uint8Array | Float32Array>(target: T, response: ArrayLike<number>): T => {
    target.set(response, promptLength);
    return target;
  };
  const tokenIds = padded(new Int32Array(total), output.responseIds);
  tokenIds.set(output.promptIds);
  return {
    rowIndex: row.index,
    uid: row.uid,
    sampleIndex,
    dataSource: row.dataSource,
    tokenIds,
    promptLength,
    responseMask: padded(new Uint8Array(total), output.responseMask),
    rolloutLogprobs: padded(new Float32Array(total), output.responseLogprobs),
    messages: output.messages,
    finishReason: output.finishReason,
    numTurns: output.numTurns,
    turnScores: output.turnScores.map(place),
    toolRewards,
    // A trajectory without a sampled token is kept, worth nothing.
    reward: sampled
      ? options.weights.trajectory * score + options.weights.tool * toolRewards.reduce((sum, r) => sum + r.value, 0)
      : 0,
    metrics: output.metrics,
    extraFields: { ...output.extraFields, ...extra, score, toolScore: output.toolScore },
  };
}
