import {
  type ChatMessage,
  hashSeed,
  type PolicyEngine,
  type PolicySequence,
  type TokenCandidate,
  type TrajectorySampling,
} from "@cria/core";
import { type ChecksOf, checkOptions, listPaths, optionChecks, showContent, UNNAMED_ROLE } from "@cria/core/internal";
import type { Change, DumpLine } from "@cria/records";
import { isOfRow, listLineCalls } from "@cria/records/internal";
import { agentLoops as builtInLoops, type DatasetRow, Semaphore } from "@cria/rollout";
import type { RunOrigin } from "../checkpoints/run-folder.js";
import type { TrainConfig } from "../config/train-config.js";
import { listPolicies } from "../policy/of-role.js";
import type { KeptPolicy, Policy } from "../policy/policy.js";
import type { Training } from "../run/training.js";
import { versionOf } from "../step/schedule.js";
import { dumpTrajectories } from "../validation/dump-trajectories.js";
import { checkGoesOn, checkLineReplays, findRow, nameLine } from "./check-line.js";
import { checkDeterministic, checkMachine, refuseReplay } from "./check-run.js";
import { compareReplay, type ReplayResult } from "./compare.js";
import { holdAgain, readVersions } from "./hold-again.js";
import { readSampling } from "./read-sampling.js";
import type { RunWeights } from "./run-weights.js";
import { nameDump, placeImages, type ShownLine, showLines } from "./show-line.js";

/** Origin of a conversation. */
export interface ReplayPlace {
  /** True if it is from a validation, which runs after its step, rather than from the training. */
  validation?: boolean;
  signal?: AbortSignal;
}

export interface ReplayOptions extends ReplayPlace {
  /** Number of leading tokens to compare; default: all. */
  until?: number;
}

export interface ForkOptions extends ReplayPlace {
  /** The token to insert; left out: it is sampled. */
  replacement?: number;
  /** 32-bit seed for sampling from there on; default: derived from the conversation's seed and the token. */
  seed?: number;
  /**
   * True: tools and interaction run, and the reward is computed. Default false: recorded answers, as long as the
   * calls are equal.
   */
  liveTools?: boolean;
  /** Called with all text from that token on: the policy's in pieces as sampled, others' as a whole. */
  onText?: (role: "assistant" | "tool" | "user", text: string) => void;
  /** Called if a live answer before that token differs from the recorded one, which is used. */
  onOtherAnswer?: (recorded: string, live: string) => void;
}

/** The continued conversation. */
export interface ForkResult {
  /** Without live tools, it has no reward, score or success. */
  line: DumpLine;
  /** Number of leading tokens that are from the record. */
  token: number;
}

const { flag, function: callback, whole } = optionChecks;

const placeChecks: ChecksOf<Required<ReplayPlace>> = { validation: flag, signal: optionChecks.signal };
const replayChecks: ChecksOf<Required<ReplayOptions>> = { ...placeChecks, until: whole };
const forkChecks: ChecksOf<Required<ForkOptions>> = {
  ...placeChecks,
  replacement: optionChecks.any,
  seed: whole,
  liveTools: flag,
  onText: callback,
  onOtherAnswer: callback,
};

interface PassedTurns {
  line: DumpLine;
  token: number;
  /** By version. */
  policies: ReadonlyMap<number, Policy>;
  signal: AbortSignal | undefined;
}

export interface ReplayParts {
  path: string;
  config: TrainConfig;
  origin: RunOrigin | null;
  weights: RunWeights;
}

/** A run opened for replays. Calls run one after another, because there is one copy of the weights. */
export class Replay {
  /** Number of steps trained again by all calls so far. */
  trainedSteps = 0;
  private readonly turn = new Semaphore(1);

  constructor(private readonly parts: ReplayParts) {}

  /** The engine, for texts of tokens. */
  get engine(): Pick<Training["policy"]["engine"], "detokenize" | "info"> {
    return this.training.policy.engine;
  }

  /** Tokenizes a text as part of a conversation. */
  tokenize(text: string): Int32Array {
    return this.training.policy.tokenizer.tokenizePlain(text);
  }

  /**
   * Replays recorded conversations, with the weights that the policy had and the recorded answers of others, and
   * compares every token. Conversations of one step run together.
   * @returns one result per conversation, in order.
   * @throws ConfigError "replay/..." for a conversation that cannot be replayed, or a wrong token; the signal's
   * reason.
   */
  replay(lines: readonly DumpLine[], options: ReplayOptions = {}): Promise<ReplayResult[]> {
    const { validation = false, until, signal } = options;
    return this.inTurn(async () => {
      checkOptions("replay.replay", options, replayChecks);
      const results: ReplayResult[] = [];
      const batches = new Map<string, number[]>();
      lines.forEach((line, i) => {
        const { seed: _, earlierSeeds: __, ...sampling } = readSampling(line, this.parts.config, validation);
        // Conversations of agents have one version, those beside them may have several.
        const key = JSON.stringify([line.step, sampling, readVersions(line).length > 0]);
        batches.set(key, [...(batches.get(key) ?? []), i]);
      });
      const shown = await this.show(lines, validation);
      for (const indices of batches.values()) {
        const batch = indices.map((i) => shown[i]!.line);
        const rows = await this.check(batch, validation);
        const held = batch.map((line, k) => {
          const stop = until === undefined ? null : stopAt(line, until);
          // An agent's training mask depends on all of its conversations, so none may stop early.
          const change = listLineCalls(line) ? null : stop;
          return { line, row: rows[k]!, change, answers: { onOtherTurn: "abort" as const } };
        });
        const { draws, sampling } = this.readDraws(batch, validation);
        const step = batch[0]!.step!;
        await this.withPolicies(batch, validation, signal, async (policies) => {
          const options = { policies, sampling, draws, step, isJudged: false, signal };
          const { ended } = await holdAgain(this.training, held, options);
          indices.forEach((i, k) => {
            results[i] = compareReplay(this.place(shown[i]!), ended[k]!, until);
          });
        });
      }
      return results;
    });
  }

  /**
   * Replays a conversation up to a token, and continues it from there.
   * @param token index of a sampled token.
   * @throws ConfigError "replay/..." as `replay`, and "replay/needs-live-tools" if the policy makes a tool call that
   * is not in the record; the signal's reason.
   */
  fork(given: DumpLine, token: number, options: ForkOptions = {}): Promise<ForkResult> {
    const { validation = false, replacement, liveTools = false, onText, onOtherAnswer, signal } = options;
    return this.inTurn(async () => {
      checkOptions("replay.fork", options, forkChecks);
      const [shown] = await this.show([given], validation);
      const { line } = shown!;
      const [row] = await this.check([line], validation);
      checkGoesOn(line);
      const { turn, keep } = findPlace(line, token);
      this.checkToken(replacement);
      const { draws, sampling } = this.readDraws([line], validation);
      const change: Change = {
        turn,
        keep,
        next: replacement ?? null,
        seed: options.seed ?? hashSeed(draws[0]!.seed, "fork", token),
        onText: (text) => onText?.("assistant", text),
      };
      const answers = {
        isLive: liveTools,
        changedTurn: turn,
        onMessage: ({ role, content }: ChatMessage) =>
          onText?.(role === "tool" ? "tool" : "user", showContent(content)),
        onOtherAnswer,
      };
      const held = [{ line, row: row!, change, answers }];
      const step = line.step!;
      const { judged } = await this.withPolicies([line], validation, signal, (policies) =>
        holdAgain(this.training, held, { policies, sampling, draws, step, isJudged: liveTools, signal }),
      );
      const trajectory = judged[0]!;
      checkPrefix(this.place(shown!), trajectory.tokenIds, token);
      const isInserted = replacement !== undefined && trajectory.responseMask[token] === 1;
      // After several versions the weights are the last one's. Going to others may load the model anew.
      if (isInserted && readVersions(line).length > 0) await this.goTo(line, validation, signal, token);
      const { engine } = this.training.policy;
      if (isInserted) {
        // The token was inserted, not sampled: its logprob is the trainer's.
        const temperature = sampling.temperature || 1;
        const [scores] = await engine.score([{ tokenIds: trajectory.tokenIds, from: token }], { temperature, signal });
        trajectory.rolloutLogprobs[token] = scores!.logprobs[token]!;
      }
      const [made] = dumpTrajectories(engine, this.training.environment, [trajectory], { step, rows: [row!] });
      return { line: liveTools ? made! : { ...made!, reward: null, score: null, success: null, parts: [] }, token };
    });
  }

  /** The most likely tokens at a token's position, with the weights that the policy had. */
  alternatives(
    line: DumpLine,
    token: number,
    options: ReplayPlace & { count?: number } = {},
  ): Promise<(TokenCandidate & { text: string })[]> {
    const { count = 10, validation = false, signal } = options;
    return this.inTurn(async () => {
      checkOptions("replay.alternatives", options, { ...placeChecks, count: optionChecks.count });
      const path = listPaths({ tokenIds: line.token_ids, segments: line.segments }).find(({ indices }) =>
        indices.includes(token),
      );
      const place = path?.indices.indexOf(token) ?? -1;
      if (place < 1) throw refuseToken(line, token, "a token with others before it");
      const [shown] = await this.show([line], validation);
      const { temperature } = readSampling(line, this.parts.config, validation);
      const drawn = { maxTokens: 1, temperature, seed: 0, topLogprobs: count, signal };
      /** @param begin evaluates the first tokens, with the keys and values of earlier versions; returns their number. */
      const sample = async (engine: PolicyEngine, begin?: (sequence: PolicySequence) => Promise<number>) => {
        const { token_ids } = this.place(shown!);
        const sequence = engine.createSequence();
        try {
          const from = (await begin?.(sequence)) ?? 0;
          const given = Array.from(path!.indices.subarray(from, place), (t) => token_ids[t]!);
          const { topLogprobs } = await sequence.generate(given, drawn);
          signal?.throwIfAborted();
          return topLogprobs![0]!.map(({ id, logprob }) => ({ id, logprob, text: engine.detokenize([id]) }));
        } finally {
          sequence.dispose();
        }
      };
      const [first] = readVersions(line);
      if (this.training.settings.partialRollout === "switch_keep_kv" && first !== undefined)
        return this.withPolicies([line], validation, signal, (policies) =>
          sample(policies.get(first)!.engine, (sequence) =>
            this.passTurns(sequence, { line: this.place(shown!), token, policies, signal }),
          ),
        );
      await this.goTo(line, validation, signal, token);
      const { policy } = this.training;
      return await sample((policy.roles?.get(findRole(line, token)) ?? policy).engine);
    });
  }

  /**
   * Evaluates the turns before that of a token, each with the keys and values of the versions before.
   * @param sequence an empty one of the version that sampled the first turn. @returns its number of tokens.
   */
  private async passTurns(sequence: PolicySequence, { line, token, policies, signal }: PassedTurns): Promise<number> {
    if (this.training.environment.multiTurn.useInferenceChatTemplate)
      throw refuseReplay("kept-kv", "has keys and values of several versions, of tokens that were rendered again", {
        subject: nameLine(line),
        expected: "multi_turn.use_inference_chat_template false, or rollout.partial_rollout other than switch_keep_kv",
        received: "both",
        remedy: "replay or fork the conversation instead",
      });
    const said = line.turns.filter(({ role, start }) => role === "assistant" && start <= token);
    let length = 0;
    for (const [i, { policy_version: version }] of said.entries()) {
      const before = said[i - 1];
      if (!before || before.policy_version === version) continue;
      await sequence.prefill(line.token_ids.slice(length, before.end), { signal });
      length = before.end;
      sequence.goOnWith!(policies.get(version!)!.engine);
    }
    return length;
  }

  /**
   * Logprobs of a conversation by the newest weights that the run saved, at its own sampling temperature; 0 at
   * tokens that were not sampled. `step`: step of these weights.
   */
  scoreNow(line: DumpLine, options: ReplayPlace = {}): Promise<{ step: number; logprobs: number[] }> {
    const { validation = false, signal } = options;
    return this.inTurn(async () => {
      checkOptions("replay.scoreNow", options, placeChecks);
      const step = (await this.parts.weights.listSaved())[0] ?? 0;
      const [shown] = await this.show([line], validation);
      this.trainedSteps += await this.parts.weights.goTo(step, signal);
      const { token_ids } = this.place(shown!);
      const { temperature } = readSampling(line, this.parts.config, validation);
      const paths = listPaths({ tokenIds: line.token_ids, segments: line.segments });
      const logprobs = line.token_ids.map(() => 0);
      for (const [role, { engine }] of listPolicies(this.training.policy)) {
        const isOwn = (t: number) => line.response_mask[t] === 1 && (role === null || findRole(line, t) === role);
        const played = role === null ? paths : paths.filter(({ indices, own }) => indices.subarray(own).some(isOwn));
        const scores = await engine.score(
          played.map(({ indices, own }) => ({
            tokenIds: indices.map((t) => token_ids[t]!),
            from: Math.max(1, own),
          })),
          { temperature: temperature || 1, signal },
        );
        played.forEach(({ indices, own }, p) => {
          for (let k = own; k < indices.length; k++) {
            const t = indices[k]!;
            if (isOwn(t)) logprobs[t] = scores[p]!.logprobs[k]!;
          }
        });
      }
      return { step, logprobs };
    });
  }

  /** Frees the model after the current call. */
  close(): Promise<void> {
    return this.inTurn(() => this.parts.weights.close());
  }

  private get training(): Training {
    return this.parts.weights.training;
  }

  private show(lines: readonly DumpLine[], validation: boolean): Promise<ShownLine[]> {
    return showLines(lines, nameDump(this.parts.path, this.parts.config, validation));
  }

  private place(shown: ShownLine): DumpLine {
    return placeImages(shown, this.training.policy.engine);
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    await this.turn.acquire();
    try {
      return await work();
    } finally {
      this.turn.release();
    }
  }

  /**
   * Finds the rows of one step's conversations, before anything is trained again. @throws ConfigError if one cannot
   * be replayed.
   */
  private async check(lines: readonly DumpLine[], validation: boolean): Promise<DatasetRow[]> {
    const { path, config, origin, weights } = this.parts;
    checkDeterministic(path, config);
    const { defaultAgentLoop, agentLoops: loops = builtInLoops } = this.training.environment;
    const given = validation ? this.training.valRows : this.training.trainRows;
    const rows = new Map(given.map((row) => [row.uid, row]));
    for (const line of lines) {
      const name = rows.get(line.uid)?.agentName ?? defaultAgentLoop;
      checkLineReplays(line, { name, recorded: loops.find(name)?.recorded });
    }
    const found = lines.map((line) => findRow(line, rows, (row) => isOfRow(line, row)));
    const { device } = this.engine.info;
    await checkMachine(path, lines[0]!.step!, { store: weights.store, device, origin });
    return found;
  }

  /**
   * Holds lines of one step with the weights that the policy had. Where its versions took over between turns, `hold`
   * gets the version of each turn, by version.
   */
  private async withPolicies<T>(
    lines: readonly DumpLine[],
    validation: boolean,
    signal: AbortSignal | undefined,
    hold: (policies: ReadonlyMap<number, Policy>) => Promise<T>,
  ): Promise<T> {
    const kept = new Map<number, KeptPolicy>();
    const versions = [...new Set(lines.flatMap(readVersions))].sort((a, b) => a - b);
    try {
      if (versions.length === 0) await this.goTo(lines[0]!, validation, signal);
      // To go back to the initial weights, the model is loaded anew.
      for (const version of versions) {
        await this.reach(version - 1, signal);
        kept.set(version, await this.training.policy.keepVersion({ updates: version - 1 }));
      }
      return await hold(kept);
    } finally {
      for (const version of kept.values()) await version.dispose();
    }
  }

  /** Restores the weights that sampled a conversation, or the turn of one of its tokens. */
  private async goTo(line: DumpLine, validation: boolean, signal: AbortSignal | undefined, token = -1): Promise<void> {
    if (line.step === null) checkLineReplays(line, { name: "tool_agent", recorded: "answers" });
    const turn = line.turns.find(({ start, end }) => token >= start && token < end);
    const updates = turn?.policy_version === undefined ? this.findWeights(line, validation) : turn.policy_version - 1;
    await this.reach(updates, signal);
  }

  private async reach(step: number, signal: AbortSignal | undefined): Promise<void> {
    const { weights, config } = this.parts;
    const { partial_rollout: partial } = config.actor_rollout_ref.rollout;
    const saved = partial !== "carry_on" && step > 0 ? await weights.listSaved() : null;
    if (saved && !saved.includes(step))
      throw refuseReplay("not-saved", "was sampled by weights that were not saved", {
        subject: `the policy after step ${step}`,
        expected: `a checkpoint of this step: with rollout.partial_rollout ${partial}, training again gives other weights`,
        received: `checkpoints after the steps ${saved.join(", ") || "(none)"}`,
        remedy: "train with trainer.save_freq=1 and trainer.max_actor_ckpt_to_keep=null, or carry_on",
      });
    this.trainedSteps += await weights.goTo(step, signal);
  }

  /** Number of training steps that the policy had taken when it began a conversation. */
  private findWeights({ step }: DumpLine, validation: boolean): number {
    return validation ? step! : versionOf(step!, this.training.settings);
  }

  private readDraws(lines: readonly DumpLine[], validation: boolean) {
    const all: TrajectorySampling[] = lines.map((line) => readSampling(line, this.parts.config, validation));
    const { seed: _, earlierSeeds: __, ...sampling } = all[0]!;
    const draws = all.map(({ seed, earlierSeeds }) => (earlierSeeds ? { seed, earlierSeeds } : { seed }));
    return { sampling, draws };
  }

  private checkToken(token: number | undefined): void {
    const { vocabSize } = this.engine.info;
    if (token === undefined || (Number.isInteger(token) && token >= 0 && token < vocabSize)) return;
    throw refuseReplay("bad-token", "is no token of the model", {
      subject: "the token to put there",
      expected: `0 to ${vocabSize - 1}`,
      received: String(token),
    });
  }
}

/** The role in which the policy sampled a token. */
function findRole({ turns }: DumpLine, token: number): string {
  const turn = turns.find(({ role, start, end }) => role === "assistant" && token >= start && token < end);
  return (turn?.call?.request.role as string | undefined) ?? UNNAMED_ROLE;
}

/** Finds the assistant's turn that contains a token, from 1, and the token's index in the turn. @throws ConfigError */
function findPlace(line: DumpLine, token: number): { turn: number; keep: number } {
  const said = line.turns.filter(({ role }) => role === "assistant");
  const at = said.findIndex(({ start, end }) => token >= start && token < end);
  if (at >= 0) return { turn: at + 1, keep: token - said[at]!.start };
  const spans = said.map(({ start, end }) => `${start} to ${end - 1}`).join(", ");
  throw refuseToken(line, token, `one that the policy sampled: ${spans}`);
}

/** Ends the conversation before a token; if others speak there, at the beginning of the assistant's next turn. */
function stopAt(line: DumpLine, until: number): Change | null {
  if (!(Number.isInteger(until) && until >= 1)) throw refuseToken(line, until, "a whole number of at least 1");
  const said = line.turns.filter(({ role }) => role === "assistant");
  const at = said.findIndex(({ end }) => end > until);
  if (at < 0) return null;
  return { turn: at + 1, keep: Math.max(0, until - said[at]!.start), next: "stop", seed: 0 };
}

function checkPrefix(line: DumpLine, tokenIds: ArrayLike<number>, token: number): void {
  let same = 0;
  while (same < token && line.token_ids[same] === tokenIds[same]) same++;
  if (same === token) return;
  throw refuseReplay("differs", "does not come out as it was recorded", {
    subject: nameLine(line),
    expected: `token ${line.token_ids[same]} at ${same}`,
    received: same < tokenIds.length ? `token ${tokenIds[same]}` : "the end of the conversation",
    remedy: "cria replay without --edit shows whether the run can be replayed",
  });
}

function refuseToken(line: DumpLine, token: number, expected: string) {
  return refuseReplay("bad-token", "is none that can be asked for", {
    subject: `token ${token} of ${nameLine(line)}`,
    expected: `${expected} (it has ${line.token_ids.length})`,
    received: String(token),
  });
}
