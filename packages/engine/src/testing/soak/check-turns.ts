import type { LlamaModel } from "../../llama-model.js";
import { loadModel } from "../../load-model.js";
import type { SoakState } from "./soak-state.js";
import type { Turn } from "./turn.js";

/** Comparisons with undisturbed runs. */
export interface SoakChecks {
  /** Number of tokens whose logprob was compared with that of score(), and the largest difference, in nats. */
  scoredTokens: number;
  worstDifference: number;
  /**
   * Number of requests that were generated again by themselves, from an empty cache. Tokens, logprobs and text must be
   * equal bit for bit, whether their KV was kept, restored, taken from another sequence or evaluated again.
   */
  replayedRequests: number;
  replayedTokens: number;
}

/**
 * Largest difference between a sampled token's logprob and that of score(): F32 agrees to rounding, which the
 * temperature (at least 0.7 here) magnifies.
 */
export const SCORE_TOLERANCE = 1e-4;

/**
 * Checks turns that ended under the current weights, on a second model that loads the saved adapter, shares no prefixes
 * and does nothing else: compares each of their tokens with score(), and generates up to `replays` turns again. The
 * weights must not change meanwhile.
 */
export async function checkTurns(state: SoakState, checks: SoakChecks, replays: number): Promise<void> {
  const turns = state.takeTurns().filter(({ weights, tokenIds }) => weights === state.weights && tokenIds.length > 0);
  const adapter = `${state.folder}/adapter-${state.weights}.gguf`;
  await state.model.saveAdapter(adapter);
  state.counts.adaptersSaved++;
  const calm = await loadModel({
    path: state.path,
    contextSize: state.model.info.contextSize,
    maxSequences: 1,
    threads: 1,
    prefixReuse: false,
    lora: { path: adapter },
  });
  state.counts.modelsLoaded++;
  try {
    await compareWeights(state, calm);
    await compareScores(state, calm, turns, checks);
    // Spread evenly over the time since the last check.
    const stride = Math.max(1, turns.length / replays);
    for (let i = 0; i < turns.length; i += stride) await replay(state, calm, turns[Math.floor(i)]!, checks);
  } finally {
    await calm.dispose();
  }
}

/** The adapter was saved to a file: every value must be restored. */
async function compareWeights(state: SoakState, calm: LlamaModel): Promise<void> {
  for (const { name, trainable } of state.model.listTensors()) {
    if (!trainable) continue;
    const [live, loaded] = await Promise.all([state.model.readTensor(name), calm.readTensor(name)]);
    if (!sameBits(live, loaded)) state.fail(`${name}: the saved adapter has other values`);
  }
}

async function compareScores(state: SoakState, calm: LlamaModel, turns: Turn[], checks: SoakChecks): Promise<void> {
  for (const temperature of new Set(turns.map(({ request }) => request.temperature))) {
    const items = turns.filter(({ request }) => request.temperature === temperature);
    const results = await calm.score(
      items.map(({ prompt, tokenIds }) => ({ tokenIds: [...prompt, ...tokenIds], from: prompt.length })),
      { temperature: temperature || 1 },
    );
    for (const [i, turn] of items.entries()) {
      for (const [k, logprob] of turn.logprobs.entries()) {
        const difference = Math.abs(logprob - results[i]!.logprobs[turn.prompt.length + k]!);
        checks.scoredTokens++;
        checks.worstDifference = Math.max(checks.worstDifference, difference);
        if (!(difference <= SCORE_TOLERANCE))
          state.fail(`token ${k} of ${describe(turn)} has logprob ${logprob}; score() is ${difference} away`);
      }
    }
  }
}

/** Runs a request again by itself. Output before an abort must be the beginning of the output without it. */
async function replay(state: SoakState, calm: LlamaModel, turn: Turn, checks: SoakChecks): Promise<void> {
  const aborted = turn.finishReason === "aborted";
  const sequence = calm.createSequence();
  const result = await sequence.generate(turn.prompt, {
    ...turn.request,
    ...(aborted ? { maxTokens: turn.tokenIds.length } : {}),
  });
  sequence.dispose();
  checks.replayedRequests++;
  checks.replayedTokens += result.tokenIds.length;
  const same =
    sameBits(result.tokenIds, turn.tokenIds) &&
    sameBits(result.logprobs, turn.logprobs) &&
    (aborted || (result.text === turn.text && result.finishReason === turn.finishReason));
  if (!same) state.fail(`replayed alone, ${describe(turn)}\ngives ${describe({ ...turn, ...result })}`);
}

function sameBits(a: Int32Array | Float32Array, b: Int32Array | Float32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}

function describe({ tokenIds, logprobs, ...turn }: Turn): string {
  return JSON.stringify({ ...turn, tokenIds: [...tokenIds], logprobs: [...logprobs] });
}
