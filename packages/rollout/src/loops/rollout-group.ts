import {
  hasFailed,
  hashSeed,
  loadImage,
  type PolicyEngine,
  type PolicySequence,
  ToolError,
  type Trajectory,
} from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { runInEpisode } from "@cria/episodes/internal";
import type { TokenizationCheck } from "@cria/tokenizer-delta";
import { resolveToolFormat } from "@cria/tools/internal";
import { copyRow, type DatasetRow } from "../data/dataset-row.js";
import { loadRow } from "../data/load-row.js";
import { samplesOf } from "../data/row-samples.js";
import { listToolSchemas } from "../data/select-tools.js";
import { findImages } from "../images/find-images.js";
import { isBadImage, isFatal } from "../is-fatal.js";
import {
  failTrajectory,
  findToolCalls,
  finishTrajectory,
  makeRewardRequest,
  nameSample,
  placeAsEarned,
  type RewardQueue,
  type RewardRequest,
} from "../rewards/index.js";
import { describeError } from "../run-with-deadline.js";
import { takeTurn } from "../take-turn.js";
import { EpisodeTrace } from "../tracing/episode-trace.js";
import type { AgentLoopContext, AgentLoopOutput, SamplingParams } from "./agent-loop.js";
import { defaultAgentOptions } from "./agent-options.js";
import { askThrough, type ConversationJournal, digestQuestion, type JournalQuestion } from "./answer-journal.js";
import type { BranchPoint } from "./branch-point.js";
import { checkOutput } from "./check-output.js";
import { makeFailureError } from "./failures.js";
import { fitPrompt } from "./fit-prompt.js";
import { GroupBranches } from "./group-branches.js";
import { GroupTrees } from "./group-trees.js";
import { type LoopOutput, recordTrajectory } from "./record-trajectory.js";
import { type ConversationReplay, findLoop, type RolloutOptions } from "./rollout-options.js";
import type { Semaphore } from "./semaphore.js";
import { createRequestLog } from "./state-log.js";
import { Switching, type SwitchingOptions } from "./switching-sequence.js";
import { addTurnValues } from "./turn-values.js";

/** A row's prompt, evaluated once for all of its samples. */
interface Prompt {
  sequence: PolicySequence;
  ids: Int32Array;
  /** False if truncation cut the prompt. */
  isWhole: boolean;
  /** True if a user's text spells control tokens that could not be located in the prompt. */
  isUnsplit: boolean;
}

/** A conversation that has ended. */
export interface Sample {
  ended: UnjudgedTrajectory;
  judged: Promise<Trajectory>;
}

/** Maximum number of retries of a failed conversation, with `onFailure: "refill"`. */
const MOST_REFILLS = 3;

/** The samples of one row. */
export class RolloutGroup {
  /** Running judges; each settles when its conversation is judged. */
  readonly judging: Promise<Trajectory>[] = [];
  private prompt: Promise<Prompt> | undefined;
  private loading: Promise<void> | undefined;
  /** Number of samples. */
  private readonly n: number;
  /** Samples that have not taken their sequence yet. */
  private waiting: number;
  /** Null: each sample begins at the prompt, and nothing goes on from another one. */
  private readonly branches: GroupBranches | null;
  private readonly trees: GroupTrees | null;

  constructor(
    private readonly engine: PolicyEngine,
    /** The row; its images are in memory once the first sample has begun. */
    private row: DatasetRow,
    /**
     * `position`: the row's position in this step; `first`: index of its first conversation among those of all rows.
     */
    private readonly at: { position: number; first: number },
    private readonly slots: Semaphore,
    private readonly rewards: RewardQueue,
    private readonly options: RolloutOptions & { signal: AbortSignal },
    private readonly stop: (error: unknown) => void,
  ) {
    this.n = samplesOf(row, options.n);
    this.waiting = this.n;
    const { tree, turnValues, seed, step } = options;
    this.branches = tree || turnValues ? new GroupBranches() : null;
    this.trees = tree ? new GroupTrees(this.branches!, tree, this.n, [seed, step, row.uid]) : null;
  }

  async run(): Promise<Sample[]> {
    const { trees } = this;
    try {
      if (trees)
        return (await settleAll(Array.from({ length: trees.count }, (_, tree) => this.runTree(trees, tree)))).flat();
      return await settleAll(Array.from({ length: this.n }, (_, sample) => this.begin(sample)));
    } finally {
      this.branches?.dispose();
      // If a failure comes before all samples took their sequences, the prompt's sequence has no owner.
      if (this.waiting > 0) (await this.prompt?.catch(() => undefined))?.sequence.dispose();
    }
  }

  /** The samples of one tree. Those of a round begin when all earlier ones have ended. */
  private async runTree(trees: GroupTrees, tree: number): Promise<Sample[]> {
    const first = trees.plant(tree);
    const samples = [this.begin(first)];
    for (let round = 1; round <= this.options.tree!.rounds; round++) {
      const ended = await settleAll(samples);
      const grown = trees.grow(tree, round, (sample) => !hasFailed(ended[sample - first]!.ended));
      // Before first conversations of later rows: what they share is still in the cache.
      samples.push(...grown.map((sample) => this.begin(sample, this.options.step - 0.5)));
    }
    return settleAll(samples);
  }

  /**
   * Begins a sample. It queues for its place at once, so that a group's samples run together and its prompt is still in
   * the cache. With `converse`, a conversation needs a place only if it runs in this process.
   */
  private begin(sample: number, rank = this.options.step): Promise<Sample> {
    if (this.options.turnValues) this.branches!.plant(sample, null, true);
    const place = this.options.converse ? null : this.acquire(rank);
    const at = { step: this.options.step, sample: nameSample(this.row, sample) };
    return runInEpisode(at, () => this.runSample(place, sample));
  }

  private acquire(rank = this.options.step): Promise<void> {
    return this.slots.acquire(rank);
  }

  private async runSample(place: Promise<void> | null, sample: number): Promise<Sample> {
    try {
      for (let attempt = 0; ; attempt++) {
        const trace = this.openTrace(sample, attempt);
        const conversed = await this.converse(attempt === 0 ? place : null, sample, attempt, trace);
        const isMeasured = this.options.turnValues && !hasFailed(conversed);
        const ended = isMeasured ? await this.measureTurns(conversed, attempt) : conversed;
        const mayRefill = this.options.onFailure === "refill" && attempt < MOST_REFILLS && !this.options.signal.aborted;
        if (mayRefill && hasFailed(ended)) {
          this.warnOfFailure(ended);
          trace?.end(ended);
          continue;
        }
        // The conversation's place is free by now, so a slow judge delays no other conversation.
        const judged = this.track(this.judge(ended, sample, attempt));
        if (trace) void trace.endWith(judged);
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

  /** An error ends the run at once; awaiting the trajectories throws it. */
  private track(judged: Promise<Trajectory>): Promise<Trajectory> {
    judged.catch(this.stop);
    this.judging.push(judged);
    return judged;
  }

  private openTrace(sample: number, attempt: number): EpisodeTrace | null {
    const { row, options, engine } = this;
    const { tracer, parent, step } = options;
    if (!tracer) return null;
    const loop = row.agentName ?? options.defaultAgentLoop;
    return new EpisodeTrace(tracer, { row, sample, step, attempt, loop, modelPath: engine.info.path, parent });
  }

  /**
   * Adds the values of its turns: from the end of each other conversations go on. They are samples behind those of the
   * row.
   */
  private async measureTurns(ended: UnjudgedTrajectory, attempt: number): Promise<UnjudgedTrajectory> {
    const { continuations } = this.options.turnValues!;
    const { sampleIndex } = ended;
    const measured = this.branches!.pointsOf(sampleIndex).map((point) => {
      const first = 1 + (point.turns - 1) * continuations;
      const samples = Array.from({ length: continuations }, (_, i) => this.n * (first + i) + sampleIndex);
      return settleAll(samples.map((sample) => this.goOn(point, sample, attempt)));
    });
    return addTurnValues(ended, await settleAll(measured));
  }

  /** A conversation that goes on from a point, and its reward. */
  private async goOn(point: BranchPoint, sample: number, attempt: number): Promise<Trajectory> {
    this.branches!.plant(sample, point, false);
    const ended = await this.converse(this.acquire(this.options.step - 0.5), sample, attempt, null);
    return this.judge(ended, sample, attempt);
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

  private async converse(
    place: Promise<void> | null,
    sample: number,
    attempt: number,
    trace: EpisodeTrace | null,
  ): Promise<UnjudgedTrajectory> {
    let isHere = false;
    const here = () => {
      isHere = true;
      return this.converseHere(place ?? this.acquire(), sample, attempt, trace);
    };
    const { converse, step, policyVersion = step } = this.options;
    try {
      if (!converse) return await here();
      await this.loadImages();
      const { uid, index } = this.row;
      const sampling = this.chooseSampling(sample, attempt);
      const work = { row: this.row, sample, step, policyVersion, sampling };
      const give = () => converse(work, here, trace?.carry() ?? {});
      const ended = await (trace ? trace.run(give) : give()).catch((error) => this.recordLoss(error, sample));
      if (!isHere) this.noteElsewhere(ended);
      return { ...ended, uid, rowIndex: index, sampleIndex: sample };
    } catch (error) {
      if (isBadImage(error) && !this.options.signal.aborted) return await this.recordBroken(error, sample);
      this.rewards.leave();
      throw error;
    }
  }

  /** Loads the row's images into memory, once for all samples; a failure is not remembered. */
  private async loadImages(): Promise<void> {
    this.loading ??= loadRow(this.row, this.options.images).then((row) => {
      this.row = row;
    });
    try {
      await this.loading;
    } catch (error) {
      this.loading = undefined;
      throw error;
    }
  }

  /** Reports the states of a conversation that ran in another process. */
  private noteElsewhere(ended: UnjudgedTrajectory): void {
    const request = createRequestLog(this.options.onState);
    request.enter("running");
    request.enter(hasFailed(ended) ? "failed" : "completed");
  }

  /** Records a conversation that another process lost as failed. */
  private recordLoss(error: unknown, sample: number): Promise<UnjudgedTrajectory> {
    if (this.options.signal.aborted || !(error instanceof ToolError)) throw error;
    return this.recordBroken(error, sample);
  }

  /** Records a conversation that failed before it began. */
  private recordBroken(error: unknown, sample: number): Promise<UnjudgedTrajectory> {
    return this.record(describeFailure(new Int32Array(0), error), sample, createRequestLog());
  }

  private async record(
    output: LoopOutput,
    sampleIndex: number,
    request: ReturnType<typeof createRequestLog>,
  ): Promise<UnjudgedTrajectory> {
    const { row, engine, trees } = this;
    const { temperature } = this.options;
    const ended = await recordTrajectory(output, { row, sampleIndex, request, engine, temperature });
    return trees ? { ...ended, branch: trees.describe(sampleIndex) } : ended;
  }

  private async converseHere(
    place: Promise<void>,
    sample: number,
    attempt: number,
    trace: EpisodeTrace | null,
  ): Promise<UnjudgedTrajectory> {
    const request = createRequestLog(this.options.onState);
    await place;
    let sequence: PolicySequence | undefined;
    try {
      this.options.signal.throwIfAborted();
      await this.loadImages();
      const isFirst = this.prompt === undefined;
      this.prompt ??= this.evaluatePrompt();
      const prompt = await this.prompt;
      sequence = await this.takeSequence(prompt, sample, attempt);
      request.enter("running");
      const work = this.runLoop.bind(this, sample, attempt, trace, sequence, prompt, request);
      const output = await (trace ? trace.run(work) : work());
      const ended = await this.record(output, sample, request);
      const { metrics } = ended;
      // The group's prompt was evaluated once; it counts for the first sample.
      const isAnew = attempt > 0 && !this.branches?.originOf(sample);
      if (isFirst || isAnew) metrics.prefill_tokens = (metrics.prefill_tokens ?? 0) + prompt.ids.length;
      if (attempt > 0) metrics.refilled = attempt;
      if (prompt.isUnsplit) metrics.tokenization_unsplit = (metrics.tokenization_unsplit ?? 0) + 1;
      this.warnOfTokens(ended);
      const { stop: _, maxTokensPerTurn: __, seed, ...parameters } = this.chooseSampling(sample, attempt);
      // In the order of a worker's record: audits compare bytes.
      return { ...ended, sampling: { seed, ...parameters } };
    } finally {
      sequence?.dispose();
      this.slots.release();
    }
  }

  /** The last sample takes the prompt's own sequence: nothing is copied for a group of one. */
  private async takeSequence({ sequence, ids }: Prompt, sample: number, attempt: number): Promise<PolicySequence> {
    const from = this.branches?.originOf(sample);
    if (attempt > 0 || sample >= this.n) return from ? from.sequence.fork() : this.openSequence(ids);
    const isLast = --this.waiting === 0;
    if (!from) return isLast ? sequence : sequence.fork();
    if (isLast) sequence.dispose();
    return from.sequence.fork();
  }

  /** The trajectory with its reward. Aborted and failed conversations are not judged and have none. */
  private async judge(ended: UnjudgedTrajectory, sample: number, attempt: number): Promise<Trajectory> {
    const { row, options, rewards } = this;
    if (options.returnFullPrompt)
      ended.extraFields.full_prompt = this.engine.detokenize(ended.tokenIds.subarray(0, ended.promptLength));
    if (hasFailed(ended)) {
      rewards.leave();
      return failTrajectory(ended);
    }
    const request = makeRewardRequest(copyRow(row), ended, this.at.first + sample);
    const ask = () => rewards.judge(request);
    // A judgement of several conversations is made anew: all of them must be there.
    const judgement = rewards.judgesEach
      ? await askThrough(this.openJournal(sample, attempt), () => this.askForJudgement(request, ended), ask)
      : await ask();
    const { aggregate = placeAsEarned } = options;
    return finishTrajectory(ended, judgement, aggregate, (trajectory) => this.findCalls(trajectory));
  }

  private openJournal(sample: number, attempt: number): ConversationJournal | undefined {
    return this.options.journal?.open({ uid: this.row.uid, sample, attempt });
  }

  private askForJudgement({ loopScore, scoreError }: RewardRequest, ended: UnjudgedTrajectory): JournalQuestion {
    return {
      ...{ kind: "judgement", name: this.row.dataSource, turn: ended.numTurns, call: 0, keepsState: false },
      asked: digestQuestion(ended.messages, loopScore, scoreError),
      signal: this.options.signal,
    };
  }

  private findCalls(ended: UnjudgedTrajectory) {
    const { multiTurn, tools } = this.options;
    // An agent may bring its own tools.
    const schemas = ended.toolSchemas ?? [...tools.values()].map((tool) => tool.schema);
    if (schemas.length === 0) return [];
    const { parse } = resolveToolFormat(multiTurn.format);
    return findToolCalls(ended, { engine: this.engine, parse, schemas, maxParallelCalls: multiTurn.maxParallelCalls });
  }

  private warnOfFailure({ sampleIndex, error, metrics }: UnjudgedTrajectory | Trajectory): void {
    const what = metrics.reward_failed ? "could not be judged" : "failed";
    const then = this.options.onFailure === "refill" ? "sampled again, three times at most" : "left out";
    this.options.onWarning?.(
      `a conversation ${what}, and is ${then} (rollout.on_failure)\n  ${nameSample(this.row, sampleIndex)}: ${error ?? "it was aborted"}`,
    );
  }

  private warnOfTokens({ extraFields }: UnjudgedTrajectory): void {
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
    // A loop with `prompt: false` makes its own prompts.
    if (!traits.prompt)
      return { sequence: this.engine.createSequence(), ids: new Int32Array(0), isWhole: true, isUnsplit: false };
    const schemas = traits.tools ? listToolSchemas(options.tools, row) : [];
    let isUnsplit = false;
    const onUnsplit = () => {
      isUnsplit = true;
    };
    const whole = options.tokenizer.encodePrompt(row.prompt, schemas, onUnsplit);
    const name = `row ${row.index} (${row.place})`;
    const images = findImages(whole, this.engine);
    const ids = fitPrompt(whole, options.maxPromptLength, options.truncation, name, images);
    return { sequence: await this.openSequence(ids), ids, isWhole: ids.length === whole.length, isUnsplit };
  }

  private async openSequence(ids: Int32Array): Promise<PolicySequence> {
    const sequence = this.engine.createSequence();
    if (ids.length === 0) return sequence;
    try {
      await sequence.prefill(ids, { signal: this.options.signal });
      return sequence;
    } catch (error) {
      sequence.dispose();
      throw error;
    }
  }

  private chooseSampling(sample: number, attempt: number): SamplingParams {
    const { stop = [], maxTokensPerTurn = null, seed, step } = this.options;
    const draw = [seed, step, this.row.uid, sample];
    const drawn = attempt === 0 ? hashSeed(...draw) : hashSeed(...draw, "attempt", attempt);
    const own = this.options.replay?.(this.at.position);
    const earlierSeeds = own?.earlierSeeds ?? this.branches?.originOf(sample)?.seeds;
    const sampling = { ...pickSampling(this.options), stop, maxTokensPerTurn, seed: own?.seed ?? drawn };
    return earlierSeeds ? { ...sampling, earlierSeeds } : sampling;
  }

  private async runLoop(
    sample: number,
    attempt: number,
    trace: EpisodeTrace | null,
    sequence: PolicySequence,
    prompt: Prompt,
    request: ReturnType<typeof createRequestLog>,
  ): Promise<LoopOutput> {
    const { row, options, engine } = this;
    const { signal } = options;
    const replay = options.replay?.(this.at.position);
    const name = row.agentName ?? options.defaultAgentLoop;
    const limits = [options.responseLength, engine.info.contextSize - prompt.ids.length];
    const added = sample >= this.n ? options.turnValues?.maxTokens : null;
    if (added != null) limits.push(this.branches!.originOf(sample)!.tokens - prompt.ids.length + added);
    const responseLength = Math.min(...limits);
    const contextLength = Math.min(options.maxPromptLength + options.responseLength, engine.info.contextSize);
    const { factory, traits, recorded } = findLoop(row, options);
    const policyVersion = options.policyVersion ?? options.step;
    const steer = replay?.steer ?? ((given: PolicySequence) => given);
    const sampling = this.chooseSampling(sample, attempt);
    const { seed } = sampling;
    const choose = options.choose && ((number: number) => options.choose!({ row, seed, number }) ?? { engine });
    const switching = recorded === "answers" ? openSwitching(choose, replay) : null;
    const createSequence = switching
      ? () => switching.createSequence()
      : replay?.steer && ((role?: string) => steer(engine.createSequence(role)));
    const steered = steer(sequence);
    const journal = options.journal && this.openJournal(sample, attempt);
    const branch = this.branches?.open(sample, { seed, sequence: steered, journal });
    try {
      const loop = factory({
        engine: createSequence ? replaceSequences(engine, createSequence) : engine,
        tokenizer: options.tokenizer,
        tools: options.tools,
        interactions: options.interactions ?? null,
        multiTurn: options.multiTurn,
        responseLength,
        contextLength,
        imageAccess: options.images ?? {},
        loadImage: (source) =>
          loadImage(source, { ...options.images, folder: process.cwd(), subject: `image of agent loop "${name}"` }),
        agent: options.agent ?? defaultAgentOptions,
        policyVersion,
        // A replay's versions take over from the first turn on: the prompt was evaluated with any weights.
        sequence: switching
          ? switching.begin(steered, prompt.ids, replay?.policies ? null : engine)
          : (branch?.sequence ?? steered),
        promptIds: prompt.ids,
        promptIsWhole: prompt.isWhole,
        request,
        ...(branch ? { branch, journal: branch.journal } : journal ? { journal } : {}),
        ...(replay?.answers ? { answers: replay.answers } : {}),
        ...(replay?.calls ? { calls: replay.calls } : {}),
        ...(trace?.scope ? { trace: trace.scope } : {}),
        signal,
        onWarning: options.onWarning,
      });
      const output = await loop.run(sampling, copyRow(row));
      if (recorded !== undefined) return output;
      const checked = checkOutput(output, {
        loop: name,
        row,
        info: engine.info,
        images: engine.images,
        responseLength: traits.prompt ? responseLength : Number.POSITIVE_INFINITY,
        contextLength: traits.prompt ? engine.info.contextSize : contextLength,
      });
      return { ...checked, ownLoop: true };
    } catch (error) {
      if (signal.aborted || isFatal(error)) throw error;
      return describeFailure(prompt.ids, error);
    } finally {
      switching?.dispose();
    }
  }
}

/** The choice of each turn's policy; null: one policy samples all turns. */
function openSwitching(
  given: SwitchingOptions["choose"] | undefined,
  replay: ConversationReplay | undefined,
): Switching | null {
  const { policies, steer } = replay ?? {};
  const choose = policies ? (turn: number) => policies[Math.min(turn, policies.length) - 1]! : given;
  return choose ? new Switching({ choose, steer }) : null;
}

function replaceSequences(
  engine: PolicyEngine,
  createSequence: PolicyEngine["createSequence"],
): AgentLoopContext["engine"] {
  return {
    info: engine.info,
    images: engine.images,
    ...(engine.roles ? { roles: engine.roles } : {}),
    tokenize: (text, given) => engine.tokenize(text, given),
    detokenize: (ids, given) => engine.detokenize(ids, given),
    createSequence,
  };
}

/** Output of a conversation whose loop threw: its prompt and the error. */
function describeFailure(promptIds: Int32Array, error: unknown): AgentLoopOutput {
  return {
    tokenIds: Int32Array.from(promptIds),
    promptLength: promptIds.length,
    responseMask: new Uint8Array(promptIds.length),
    numTurns: 1,
    metrics: {},
    finishReason: "aborted",
    error: describeError(error),
  };
}

/** Waits for all promises; then throws the first error, or returns the results in order. */
export async function settleAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  for (const result of settled) if (result.status === "rejected") throw result.reason;
  return settled.map((result) => (result as PromiseFulfilledResult<T>).value);
}
