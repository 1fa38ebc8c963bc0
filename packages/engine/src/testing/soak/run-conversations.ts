import { setTimeout as sleep } from "node:timers/promises";
import type { GenerateResult } from "@cria/core";
import { Conversation } from "./conversation.js";
import type { SeededRandom } from "./seeded-random.js";
import type { SoakState } from "./soak-state.js";
import type { Turn } from "./turn.js";

// Low temperatures magnify rounding; greedy requests report logprobs at 1.
const TEMPERATURES = [0, 0.7, 1, 1.3];

/** Prompts that many conversations start with, whole. */
const SHARED_PROMPTS = [
  "What is 12 + 7?",
  "Ann has 3 boxes of 12 pens each and loses 5. How many pens are left?",
  "Hi",
];

const WORDS = ["pens", "12", "how many", "and", "7", "left", "each box", "?", "3 + 4", "Tom", "buys", "1009"];

/** One conversation and its forks from beginning to end: start, turns, aborts, idle times, disposal. */
export async function runFamily(state: SoakState, random: SeededRandom): Promise<void> {
  const root = new Conversation(state, random.pick(TEMPERATURES));
  state.counts.conversations++;
  const prompt = makePrompt(state, random);
  if (random.chance(0.35)) {
    await root.prefill(prompt);
    const forks = Array.from({ length: random.between(1, 5) }, () => root.fork());
    const rootGoesOn = random.chance(0.5);
    if (!rootGoesOn) root.dispose();
    await Promise.all([
      ...forks.map((fork, i) => talk(state, random.derive(i), fork, [])),
      ...(rootGoesOn ? [talk(state, random.derive(99), root, [])] : []),
    ]);
  } else {
    await talk(state, random, root, prompt);
  }
}

function makePrompt(state: SoakState, random: SeededRandom): number[] {
  const text = random.chance(0.4)
    ? random.pick(SHARED_PROMPTS)
    : Array.from({ length: random.between(1, 25) }, () => random.pick(WORDS)).join(" ");
  return [...state.model.tokenize(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)];
}

/** Takes turns of one conversation until it is full or ends; also awaits its forks. */
async function talk(
  state: SoakState,
  random: SeededRandom,
  conversation: Conversation,
  firstDelta: number[],
): Promise<void> {
  const forks: Promise<void>[] = [];
  let delta = firstDelta;
  for (let left = random.between(1, random.chance(0.3) ? 25 : 5); left > 0 && !state.stopping; left--) {
    const request = makeRequest(random, conversation.temperature);
    if (conversation.tokens.length + delta.length + request.maxTokens > state.model.info.contextSize) break;
    if (delta.length > 0 && random.chance(0.1)) {
      // Two requests instead of one; the first may be interrupted at any time.
      await conversation.prefill(delta, random.chance(0.3) ? AbortSignal.timeout(random.between(0, 5)) : undefined);
      delta = [];
      if (random.chance(0.3)) await sleep(random.between(0, 40));
    }
    const leaves = random.chance(0.04);
    state.noteTurn(await takeTurn(state, random, conversation, delta, request, leaves));
    if (leaves) break;
    if (conversation.mayFork && random.chance(0.15))
      forks.push(talk(state, random.derive(left), conversation.fork(), makeDelta(state, random)));
    if (random.chance(0.3)) await sleep(random.between(0, 40));
    delta = makeDelta(state, random);
    if (random.chance(0.15)) delta = resend(random, conversation, delta);
  }
  conversation.dispose();
  await Promise.all(forks);
}

/** Continues as a client of a stateless server does, which sends everything again, sometimes from an earlier point. */
function resend(random: SeededRandom, conversation: Conversation, delta: number[]): number[] {
  const { tokens } = conversation;
  const kept = random.chance(0.5) ? tokens.length : random.between(1, tokens.length);
  const whole = [...tokens.slice(0, kept), ...delta];
  conversation.restart(random.chance(0.5));
  return whole;
}

/** Text added by others between two turns; sometimes nothing, sometimes a single token. */
function makeDelta(state: SoakState, random: SeededRandom): number[] {
  if (random.chance(0.1)) return [];
  const text = Array.from({ length: random.between(1, 6) }, () => random.pick(WORDS)).join(" ");
  return [...state.model.tokenize(text)].slice(0, random.chance(0.1) ? 1 : 30);
}

function makeRequest(random: SeededRandom, temperature: number): Turn["request"] {
  return {
    maxTokens: random.between(1, 28),
    temperature,
    seed: random.between(0, 0xffffffff),
    ...(random.chance(0.3) ? { topP: 0.8 + 0.2 * random.next() } : {}),
    ...(random.chance(0.3) ? { topK: random.between(1, 50) } : {}),
    ...(random.chance(0.2) ? { minP: 0.1 * random.next() } : {}),
    ...(random.chance(0.5) ? { stopTokens: [] } : {}),
    ...(random.chance(0.2) ? { stopStrings: ["5", "</"] } : {}),
  };
}

async function takeTurn(
  state: SoakState,
  random: SeededRandom,
  conversation: Conversation,
  delta: number[],
  request: Turn["request"],
  leaves: boolean,
): Promise<Turn> {
  const weights = state.weights;
  const chunks: string[] = [];
  const streams = random.chance(0.2);
  const aborts = random.chance(0.12) ? random.between(0, 25) : null;
  const signal = aborts === null ? undefined : AbortSignal.timeout(aborts);
  const prompt = [...conversation.tokens, ...delta];
  const running = conversation.generate(delta, {
    ...request,
    signal: aborts === 0 ? AbortSignal.abort() : signal,
    ...(streams ? { onText: (text: string) => chunks.push(text) } : {}),
  });
  if (leaves) {
    await sleep(random.between(0, 15));
    conversation.dispose();
    state.counts.disposedInFlight++;
  }
  const result: GenerateResult = await running;
  state.counts.generations++;
  state.counts.sampledTokens += result.tokenIds.length;
  if (result.finishReason === "aborted") state.counts.aborted++;
  else if (streams && chunks.join("") !== result.text)
    state.fail(`streamed ${JSON.stringify(chunks.join(""))} of ${JSON.stringify(result.text)}`);
  if (!leaves) conversation.checkTokens();
  return {
    prompt,
    request,
    tokenIds: result.tokenIds,
    logprobs: result.logprobs,
    finishReason: result.finishReason,
    text: result.text,
    reused: result.stats.reusedTokens,
    weights: state.weights === weights ? weights : null,
  };
}
