import { setMaxListeners } from "node:events";
import {
  ConfigError,
  hasFailed,
  hashSeed,
  type PolicyEngine,
  type PolicySequence,
  type Registry,
  type Trajectory,
} from "@cria/core";
import type { DeltaTokenizer, TokenizationCheck } from "@cria/tokenizer-delta";
import { type BaseInteraction, type BaseTool, resolveToolParser } from "@cria/tools";
import { copyRow, type DatasetRow } from "../data/dataset-row.js";
import { freezeData } from "../rewards/copy-data.js";
import {
  checkRowHasReward,
  failTrajectory,
  findToolCalls,
  finishTrajectory,
  makeRewardManager,
  makeRewardRequest,
  nameSample,
  placeAsEarned,
  type RewardAggregator,
  type RewardFunction,
  type RewardManager,
  RewardQueue,
} from "../rewards/index.js";
import { describeError } from "../run-with-deadline.js";
import type { MultiTurnOptions } from "./agent-loop.js";
import { type AgentLoopEntry, agentLoops } from "./agent-loops.js";
import { checkOutput } from "./check-output.js";
import { type CompleteOutput, completeOutput } from "./complete-output.js";
import { makeFailureError, type OnFailure } from "./failures.js";
import { fitPrompt, type Truncation } from "./fit-prompt.js";
import { selectInteraction } from "./interaction-session.js";
import { isFatal } from "./is-fatal.js";
import { recordTrajectory, type UnjudgedTrajectory } from "./record-trajectory.js";
import { Semaphore } from "./semaphore.js";
import { createRequestLog } from "./state-log.js";
import { takeTurn } from "./take-turn.js";
import { listToolSchemas } from "./tool-session.js";

export interface RolloutOptions {
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  /** By name. Null or left out: what rows say about interactions is not looked at. */
  interactions?: ReadonlyMap<string, BaseInteraction> | null;
  multiTurn: MultiTurnOptions;
  /** A plain function judges each trajectory alone; null: by data source, else interactions and tools do. */
  reward: RewardFunction | RewardManager | null;
  /** Makes the reward of a trajectory from its score and its step rewards, once. Default: each as it is. */
  aggregate?: RewardAggregator;
  /** What follows when the environment or the judge breaks a conversation; default "drop". */
  onFailure?: OnFailure;
  /** Give the rendered prompt, as the model saw it, in `extraFields.full_prompt`. */
  returnFullPrompt?: boolean;
  /** Samples of each row. */
  n: number;
  temperature: number;
  topP: number;
  topK: number;
  /** Tokens less likely than so many times the likeliest are not sampled; default 0: all are. */
  minP?: number;
  /** Texts that end a turn; default none. */
  stop?: readonly string[];
  /** Most tokens of one turn; default null: what is left of `responseLength`. */
  maxTokensPerTurn?: number | null;
  /** With `step`, row and sample it decides every random draw. */
  seed: number;
  step: number;
  maxPromptLength: number;
  responseLength: number;
  truncation: Truncation;
  defaultAgentLoop: string;
  /** Loops by name; default: built-in and registered ones. */
  agentLoops?: Registry<AgentLoopEntry>;
  /** Reward functions by `data_source`, where `reward` is null; default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
  /** Conversations at once. Default: as many as fit into the KV cache. */
  concurrency?: number;
  signal?: AbortSignal;
  /** Called with what deserves a look but stops nothing, once for each kind. */
  onWarning?: (warning: string) => void;
  /** Called with each trajectory as soon as it is judged. */
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** Rollouts whose conversations are all over. */
export interface EndedRollouts {
  /** By (row, sample). Their judges may still be at work. */
  conversations: UnjudgedTrajectory[];
  /** The same with their rewards, once all are judged. @throws what ends the run. */
  finish: () => Promise<Trajectory[]>;
}

/** A row's prompt, evaluated once for all of its samples. */
interface Prompt {
  sequence: PolicySequence;
  ids: Int32Array;
  /** Whether nothing of it was cut away. */
  isWhole: boolean;
  /** Whether it spells control tokens in the user's name, and it could not be told where. */
  isUnsplit: boolean;
}

/** One conversation that is over. */
interface Sample {
  ended: UnjudgedTrajectory;
  judged: Promise<Trajectory>;
}

/** Further attempts at a conversation that failed, with `onFailure: "refill"`. */
const MOST_REFILLS = 3;

/**
 * Runs `n` conversations for each row, all at once; results are ordered by (row, sample), whatever finished first.
 * A conversation that fails is a trajectory with an `error`, or what `onFailure` says. What is wrong with the config, the
 * data or the engine throws, once every conversation has ended: nothing goes on in the background.
 */
export async function runRollouts(
  engine: PolicyEngine,
  rows: readonly DatasetRow[],
  options: RolloutOptions,
): Promise<Trajectory[]> {
  return (await startRollouts(engine, rows, options)).finish();
}

/**
 * `runRollouts` in two parts: resolves when the conversations are over, and goes on judging them. With
 * `onFailure: "refill"` all are judged by then, for what cannot be judged is sampled again.
 */
export async function startRollouts(
  engine: PolicyEngine,
  rows: readonly DatasetRow[],
  options: RolloutOptions,
): Promise<EndedRollouts> {
  resolveToolParser(options.multiTurn.format);
  for (const row of rows) checkRow(row, options);
  // All conversations share them.
  for (const tool of options.tools.values()) freezeData(tool.schema);
  const slots = new Semaphore(options.concurrency ?? engine.info.maxSequences);
  const run = new AbortController();
  // Every running conversation listens.
  setMaxListeners(0, run.signal);
  const abort = () => run.abort(options.signal?.reason);
  if (options.signal?.aborted) abort();
  options.signal?.addEventListener("abort", abort, { once: true });
  const linked = { ...options, signal: run.signal, onWarning: onceEach(options.onWarning) };
  // After an error nobody will see what the others do: they end early.
  const stop = (error: unknown) => run.abort(error);
  const { reward } = options;
  const manager =
    typeof reward === "function" || reward === null
      ? makeRewardManager("naive", { reward, rewards: options.rewards })
      : reward;
  const rewards = new RewardQueue(manager, rows.length * options.n, run.signal);
  const groups = rows.map((row, i) => new Group(engine, row, i, slots, rewards, linked, stop));
  const waitForJudges = async () => {
    await Promise.allSettled(groups.flatMap((group) => group.judging));
    options.signal?.removeEventListener("abort", abort);
  };
  try {
    const samples = (await settleAll(groups.map((group) => group.run()))).flat();
    void waitForJudges();
    return {
      conversations: samples.map(({ ended }) => ended),
      finish: () => settleAll(samples.map(({ judged }) => judged)),
    };
  } catch (error) {
    await waitForJudges();
    throw error;
  }
}

/** Passes on the first warning of each kind, that is, of each first line. */
function onceEach(warn: ((warning: string) => void) | undefined): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (seen.has(kind)) return;
    seen.add(kind);
    warn?.(warning);
  };
}

/** Waits for all; then throws the first error, or returns the results in order. */
async function settleAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  for (const result of settled) if (result.status === "rejected") throw result.reason;
  return settled.map((result) => (result as PromiseFulfilledResult<T>).value);
}

/** @throws ConfigError when no loop has the row's name. */
function findLoop(
  row: DatasetRow,
  { agentLoops: loops = agentLoops, defaultAgentLoop }: RolloutOptions,
): AgentLoopEntry {
  return loops.get(row.agentName ?? defaultAgentLoop);
}

/** What a row names must exist: found out before anything is generated. @throws ConfigError */
function checkRow(row: DatasetRow, options: RolloutOptions): void {
  const { traits } = findLoop(row, options);
  if (traits.interactions) selectInteraction(options.interactions ?? null, row);
  if (options.reward === null) checkRowHasReward(row, { ...options, interactions: options.interactions ?? null });
  if (!traits.tools || options.tools.size === 0 || !row.extraInfo.need_tools_kwargs) return;
  const missing = Object.keys(row.extraInfo.tools_kwargs ?? {}).filter((name) => !options.tools.has(name));
  if (missing.length === 0) return;
  throw new ConfigError("names a tool that is not configured", {
    code: "config/unknown-tool",
    subject: `row ${row.index}: extra_info.tools_kwargs`,
    expected: [...options.tools.keys()].join(", "),
    received: missing.join(", "),
    remedy: "name it in the file that multi_turn.tool_config_path points to",
  });
}

/** The samples of one row. */
class Group {
  /** Judges at work; each is settled when its conversation's judgement is over. */
  readonly judging: Promise<Trajectory>[] = [];
  private prompt: Promise<Prompt> | undefined;
  /** Samples that have not taken their sequence yet. */
  private waiting: number;

  constructor(
    private readonly engine: PolicyEngine,
    private readonly row: DatasetRow,
    /** Among the rows of this step. */
    private readonly position: number,
    private readonly slots: Semaphore,
    private readonly rewards: RewardQueue,
    private readonly options: RolloutOptions & { signal: AbortSignal },
    private readonly stop: (error: unknown) => void,
  ) {
    this.waiting = options.n;
  }

  async run(): Promise<Sample[]> {
    // Queue for all places first, so that a group's samples run together and its prompt is still in the cache.
    const places = Array.from({ length: this.options.n }, () => this.slots.acquire());
    try {
      return await settleAll(places.map((place, sample) => this.runSample(place, sample)));
    } finally {
      // A failure before all samples took theirs leaves the prompt's sequence without an owner.
      if (this.waiting > 0) (await this.prompt?.catch(() => undefined))?.sequence.dispose();
    }
  }

  private async runSample(place: Promise<void>, sample: number): Promise<Sample> {
    try {
      for (let attempt = 0; ; attempt++) {
        const ended = await this.converse(attempt === 0 ? place : this.slots.acquire(), sample, attempt);
        const mayRefill = this.options.onFailure === "refill" && attempt < MOST_REFILLS && !this.options.signal.aborted;
        if (mayRefill && hasFailed(ended)) {
          this.warnOfFailure(ended);
          continue;
        }
        // The conversation has given its place to another: a slow judge holds nobody up.
        const judged = this.track(this.judge(ended, sample));
        if (mayRefill && hasFailed(await judged)) {
          this.warnOfFailure(await judged);
          this.rewards.rejoin();
          continue;
        }
        return { ended, judged: this.track(this.deliver(judged)) };
      }
    } catch (error) {
      this.stop(error);
      throw error;
    }
  }

  /** An error ends the run at once, and is heard of by whoever asks for the trajectories. */
  private track(judged: Promise<Trajectory>): Promise<Trajectory> {
    judged.catch(this.stop);
    this.judging.push(judged);
    return judged;
  }

  /** The sample's final trajectory. @throws ToolError when it failed and failures are errors. */
  private async deliver(judged: Promise<Trajectory>): Promise<Trajectory> {
    const trajectory = await judged;
    const { onFailure, signal, onTrajectory } = this.options;
    if (hasFailed(trajectory) && !signal.aborted) {
      if (onFailure === "error") throw makeFailureError(this.row, trajectory);
      this.warnOfFailure(trajectory);
    }
    onTrajectory?.(trajectory);
    return trajectory;
  }

  private async converse(place: Promise<void>, sample: number, attempt: number): Promise<UnjudgedTrajectory> {
    const request = createRequestLog();
    await place;
    let sequence: PolicySequence | undefined;
    try {
      this.options.signal.throwIfAborted();
      const isFirst = this.prompt === undefined;
      this.prompt ??= this.evaluatePrompt();
      const prompt = await this.prompt;
      sequence = attempt === 0 ? this.takeSequence(prompt) : await this.openSequence(prompt.ids);
      request.enter("running");
      const output = await this.runLoop(sample, attempt, sequence, prompt, request);
      // The group's prompt was evaluated once: its first sample pays.
      if (isFirst || attempt > 0)
        output.metrics.prefill_tokens = (output.metrics.prefill_tokens ?? 0) + prompt.ids.length;
      if (attempt > 0) output.metrics.refilled = attempt;
      if (prompt.isUnsplit) output.metrics.tokenization_unsplit = (output.metrics.tokenization_unsplit ?? 0) + 1;
      this.warnOfTokens(output);
      return recordTrajectory(this.row, sample, output, request);
    } catch (error) {
      this.rewards.leave();
      throw error;
    } finally {
      sequence?.dispose();
      this.slots.release();
    }
  }

  /** The last sample takes the prompt's own sequence: nothing is copied for a group of one. */
  private takeSequence({ sequence }: Prompt): PolicySequence {
    return --this.waiting > 0 ? sequence.fork() : sequence;
  }

  /** The trajectory with its reward. What was aborted or failed is not judged, and worth nothing. */
  private async judge(ended: UnjudgedTrajectory, sample: number): Promise<Trajectory> {
    const { row, options, rewards } = this;
    if (options.returnFullPrompt)
      ended.extraFields.full_prompt = this.engine.detokenize(ended.tokenIds.subarray(0, ended.promptLength));
    if (hasFailed(ended)) {
      rewards.leave();
      return failTrajectory(ended);
    }
    const judgement = await rewards.judge(makeRewardRequest(copyRow(row), ended, this.position * options.n + sample));
    const { aggregate = placeAsEarned } = options;
    return finishTrajectory(ended, judgement, aggregate, (trajectory) => this.findCalls(trajectory));
  }

  private findCalls(ended: UnjudgedTrajectory) {
    const { multiTurn, tools } = this.options;
    if (tools.size === 0) return [];
    const parse = resolveToolParser(multiTurn.format);
    const schemas = [...tools.values()].map((tool) => tool.schema);
    return findToolCalls(ended, { engine: this.engine, parse, schemas, maxParallelCalls: multiTurn.maxParallelCalls });
  }

  private warnOfFailure({ sampleIndex, error, metrics }: UnjudgedTrajectory | Trajectory): void {
    const what = metrics.reward_failed ? "could not be judged" : "failed";
    const then = this.options.onFailure === "refill" ? "sampled again, three times at most" : "left out";
    this.options.onWarning?.(
      `a conversation ${what}, and is ${then} (rollout.on_failure)\n  ${nameSample(this.row, sampleIndex)}: ${error ?? "it was aborted"}`,
    );
  }

  private warnOfTokens({ extraFields }: CompleteOutput): void {
    const { onWarning } = this.options;
    const check = extraFields.tokenization as TokenizationCheck | undefined;
    if (check?.kind !== "mismatch") return;
    onWarning?.(
      [
        "the tokens of a rollout are not those of its whole conversation: check the chat template",
        `  row ${this.row.index}, template: ${JSON.stringify(check.expected)}`,
        `  row ${this.row.index}, rollout:  ${JSON.stringify(check.received)}`,
        "  multi_turn.tokenization_sanity_check_mode: ignore_strippable looks past whitespace, disable looks at nothing",
      ].join("\n"),
    );
  }

  private async evaluatePrompt(): Promise<Prompt> {
    const { row, options } = this;
    await takeTurn();
    const { traits } = findLoop(row, options);
    const schemas = traits.tools ? listToolSchemas(options.tools, row) : [];
    let isUnsplit = false;
    const onUnsplit = () => {
      isUnsplit = true;
    };
    const whole = options.tokenizer.encodePrompt(row.prompt, schemas, onUnsplit);
    const ids = fitPrompt(whole, options.maxPromptLength, options.truncation, `row ${row.index} (${row.place})`);
    return { sequence: await this.openSequence(ids), ids, isWhole: ids.length === whole.length, isUnsplit };
  }

  private async openSequence(ids: Int32Array): Promise<PolicySequence> {
    const sequence = this.engine.createSequence();
    try {
      await sequence.prefill(ids, { signal: this.options.signal });
      return sequence;
    } catch (error) {
      sequence.dispose();
      throw error;
    }
  }

  private async runLoop(
    sample: number,
    attempt: number,
    sequence: PolicySequence,
    prompt: Prompt,
    request: ReturnType<typeof createRequestLog>,
  ): Promise<CompleteOutput> {
    const { row, options, engine } = this;
    const { temperature, topP, topK, minP = 0, stop = [], maxTokensPerTurn = null, signal } = options;
    const draw = [options.seed, options.step, row.uid, sample];
    const seed = attempt === 0 ? hashSeed(...draw) : hashSeed(...draw, "attempt", attempt);
    const name = row.agentName ?? options.defaultAgentLoop;
    const responseLength = Math.min(options.responseLength, engine.info.contextSize - prompt.ids.length);
    try {
      const loop = findLoop(row, options).factory({
        engine,
        tokenizer: options.tokenizer,
        tools: options.tools,
        interactions: options.interactions ?? null,
        multiTurn: options.multiTurn,
        responseLength,
        sequence,
        promptIds: prompt.ids,
        promptIsWhole: prompt.isWhole,
        request,
        signal,
      });
      const sampling = { temperature, topP, topK, minP, stop, maxTokensPerTurn, seed };
      const output = await loop.run(sampling, copyRow(row));
      const checked = checkOutput(output, { loop: name, row, info: engine.info, responseLength });
      return await completeOutput(checked, row, engine, temperature);
    } catch (error) {
      if (signal.aborted || isFatal(error)) throw error;
      return describeFailure(row, prompt.ids, error);
    }
  }
}

/** The record of a conversation whose loop threw: its prompt, and why. */
function describeFailure(row: DatasetRow, promptIds: Int32Array, error: unknown): CompleteOutput {
  return {
    tokenIds: Int32Array.from(promptIds),
    promptLength: promptIds.length,
    responseMask: new Uint8Array(promptIds.length),
    rolloutLogprobs: new Float32Array(promptIds.length),
    turnScores: [],
    toolRewards: [],
    toolScore: null,
    interactionScore: null,
    numTurns: 1,
    metrics: {},
    messages: copyRow(row).prompt,
    finishReason: "aborted",
    extraFields: {},
    transitions: [],
    turns: [],
    error: describeError(error),
  };
}
