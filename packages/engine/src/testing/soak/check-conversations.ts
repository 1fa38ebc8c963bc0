import type { LlamaModel } from "../../llama-model.js";
import type { LlamaSequence } from "../../llama-sequence.js";
import { loadModel } from "../../load-model.js";
import type { ConversationLog, FamilyLog, Turn } from "./conversation-log.js";
import type { SoakState } from "./soak-state.js";

/** What was compared with undisturbed runs. */
export interface SoakChecks {
  /** Tokens whose logprob was compared with that of score(), and the largest difference, in nats. */
  scoredTokens: number;
  worstDifference: number;
  /** Requests replayed alone with the same KV history: tokens, logprobs and text must be equal, bit for bit. */
  replayedRequests: number;
  replayedTokens: number;
  /** Requests whose KV was evaluated anew in part (evicted, flushed): equal to rounding only, so only scored. */
  recomputedRequests: number;
}

/**
 * Largest difference between a sampled token's logprob and that of score(): F32 agrees to rounding, which the
 * temperature (at least 0.7 here) magnifies.
 */
export const SCORE_TOLERANCE = 1e-4;

/**
 * Checks families that ended under the present weights, on a second model that loads the saved adapter and does nothing
 * else: every sampled token against score(), and up to `replays` conversations generated again, alone.
 * The weights must not change meanwhile.
 */
export async function checkConversations(state: SoakState, checks: SoakChecks, replays: number): Promise<void> {
  const weights = state.weights;
  const families = state.ended;
  state.ended = [];
  const adapter = `${state.folder}/adapter-${weights}.gguf`;
  await state.model.saveAdapter(adapter);
  state.counts.adaptersSaved++;
  const calm = await loadModel({
    path: state.path,
    contextSize: state.model.info.contextSize,
    maxSequences: 1,
    threads: 1,
    lora: { path: adapter },
  });
  state.counts.modelsLoaded++;
  try {
    await compareWeights(state, calm);
    await compareScores(state, calm, families, checks);
    const logs = families.flatMap(({ members }) => members);
    // Evenly over the whole time since the last check.
    const stride = Math.max(1, Math.ceil(logs.length / replays));
    for (let i = 0; i < logs.length; i += stride) await replay(state, calm, logs[i]!, checks);
  } finally {
    await calm.dispose();
  }
}

/** The adapter went through a file: every value must have come back. */
async function compareWeights(state: SoakState, calm: LlamaModel): Promise<void> {
  for (const { name, trainable } of state.model.listTensors()) {
    if (!trainable) continue;
    const [live, loaded] = await Promise.all([state.model.readTensor(name), calm.readTensor(name)]);
    if (!sameBits(live, loaded)) state.fail(`${name}: the saved adapter has other values`);
  }
}

async function compareScores(
  state: SoakState,
  calm: LlamaModel,
  families: readonly FamilyLog[],
  checks: SoakChecks,
): Promise<void> {
  for (const temperature of new Set(families.map((family) => family.temperature))) {
    const items = families
      .filter((family) => family.temperature === temperature)
      .flatMap(({ members }) => members.map(locateSampled))
      .filter(({ sampled }) => sampled.some(({ turn }) => turn.weights === state.weights));
    const results = await calm.score(
      items.map(({ tokenIds, sampled }) => ({ tokenIds, from: sampled[0]!.start })),
      { temperature: temperature || 1 },
    );
    for (const [i, { sampled }] of items.entries()) {
      for (const { turn, start } of sampled) {
        if (turn.weights !== state.weights) continue;
        for (const [k, logprob] of turn.logprobs.entries()) {
          const difference = Math.abs(logprob - results[i]!.logprobs[start + k]!);
          checks.scoredTokens++;
          checks.worstDifference = Math.max(checks.worstDifference, difference);
          if (!(difference <= SCORE_TOLERANCE))
            state.fail(`token ${k} of ${describe(turn)} has logprob ${logprob}; score() is ${difference} away`);
        }
      }
    }
  }
}

/** A conversation's tokens, and where in them its own turns sampled. */
function locateSampled({ turns, firstOwnTurn }: ConversationLog) {
  const tokenIds: number[] = [];
  const sampled: { turn: Turn; start: number }[] = [];
  for (const [i, turn] of turns.entries()) {
    tokenIds.push(...turn.delta);
    if (i >= firstOwnTurn && turn.tokenIds.length > 0) sampled.push({ turn, start: tokenIds.length });
    tokenIds.push(...turn.tokenIds);
  }
  return { tokenIds, sampled };
}

/**
 * Runs a conversation again, alone. Where the engine had lost its KV and evaluated all tokens anew, so does the replay;
 * where it had evaluated a part anew, the rest is skipped, as decoding and prefill round differently.
 */
async function replay(state: SoakState, calm: LlamaModel, log: ConversationLog, checks: SoakChecks): Promise<void> {
  let sequence: LlamaSequence | null = null;
  let pending: number[] = [];
  const tokens: number[] = [];
  let forked = false;
  for (const [i, turn] of log.turns.entries()) {
    forked ||= log.forkPoints.includes(i);
    pending.push(...turn.delta);
    tokens.push(...turn.delta);
    // Aborted before anything was evaluated: its delta is evaluated with the next one.
    if (turn.request && turn.tokenIds.length === 0) continue;
    const isFirst = tokens.length === pending.length;
    if (isFirst || turn.reused === 0) {
      sequence?.dispose();
      sequence = calm.createSequence();
      pending = [...tokens];
    }
    const sharesRounding = forked && turn.reused !== 0 && log.family.recomputed;
    forked = false;
    if (sequence && (turn.weights !== state.weights || sharesRounding)) {
      sequence.dispose();
      sequence = null;
    }
    if (sequence && !(await replayTurn(state, sequence, pending, log, i, isFirst, checks))) {
      sequence.dispose();
      sequence = null;
    }
    if (!sequence && turn.request) checks.recomputedRequests++;
    pending = [];
    tokens.push(...turn.tokenIds);
  }
  sequence?.dispose();
}

/** False when the engine had kept another part of the KV than an undisturbed run does, so that nothing can be said. */
async function replayTurn(
  state: SoakState,
  sequence: LlamaSequence,
  delta: number[],
  log: ConversationLog,
  index: number,
  isFirst: boolean,
  checks: SoakChecks,
): Promise<boolean> {
  const turn = log.turns[index]!;
  if (!turn.request) {
    await sequence.prefill(delta);
    return true;
  }
  const aborted = turn.finishReason === "aborted";
  const result = await sequence.generate(delta, {
    ...turn.request,
    ...(aborted ? { maxTokens: turn.tokenIds.length } : {}),
  });
  // A first turn may have found its prompt's KV with another conversation: evaluated in the same way, so equal.
  if (!isFirst && result.stats.reusedTokens !== turn.reused) return false;
  checks.replayedRequests++;
  checks.replayedTokens += result.tokenIds.length;
  const same =
    sameBits(result.tokenIds, turn.tokenIds) &&
    sameBits(result.logprobs, turn.logprobs) &&
    (aborted || (result.text === turn.text && result.finishReason === turn.finishReason));
  if (!same) {
    const before = log.turns.slice(0, index).map(describe).join("\n");
    state.fail(
      `replayed alone, ${describe(turn)} gives ${describe({ ...turn, ...result })}\n` +
        `It forked at turns [${log.forkPoints}]; before it came\n${before}`,
    );
  }
  return same;
}

function sameBits(a: Int32Array | Float32Array, b: Int32Array | Float32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}

function describe({ tokenIds, logprobs, ...turn }: Turn): string {
  return JSON.stringify({ ...turn, tokenIds: [...tokenIds], logprobs: [...logprobs] });
}
