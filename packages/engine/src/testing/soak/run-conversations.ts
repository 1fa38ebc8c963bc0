import { setTimeout as sleep } from "node:timers/promises";
import type { GenerateResult } from "@cria/core";
import type { LlamaSequence } from "../../llama-sequence.js";
import { ConversationLog, FamilyLog, type Turn } from "./conversation-log.js";
import type { SeededRandom } from "./seeded-random.js";
import type { SoakState } from "./soak-state.js";

// Low temperatures magnify rounding; greedy requests report logprobs at 1.
const TEMPERATURES = [0, 0.7, 1, 1.3];

/** Prompts that many conversations start with, whole. */
const SHARED_PROMPTS = [
  "What is 12 + 7?",
  "Ann has 3 boxes of 12 pens each and loses 5. How many pens are left?",
  "Hi",
];

const WORDS = ["pens", "12", "how many", "and", "7", "left", "each box", "?", "3 + 4", "Tom", "buys", "1009"];

/** One conversation and its forks from beginning to end: joins, turns, aborts, idle times, leaves. */
export async function runFamily(state: SoakState, random: SeededRandom): Promise<void> {
  const family = new FamilyLog(random.pick(TEMPERATURES));
  const root = state.model.createSequence();
  state.counts.conversations++;
  const prompt = makePrompt(state, random);
  const log = new ConversationLog(family);
  if (random.chance(0.35)) {
    await prefill(state, root, log, prompt);
    const forks = Array.from({ length: random.between(1, 5) }, () => forkOf(state, root, log));
    const rootGoesOn = random.chance(0.5);
    if (!rootGoesOn) root.dispose();
    await Promise.all([
      ...forks.map(([fork, forkLog], i) => talk(state, random.derive(i), fork, forkLog, [])),
      ...(rootGoesOn ? [talk(state, random.derive(99), root, log, [])] : []),
    ]);
  } else {
    await talk(state, random, root, log, prompt);
  }
  state.ended.push(family);
}

function makePrompt(state: SoakState, random: SeededRandom): number[] {
  const text = random.chance(0.4)
    ? random.pick(SHARED_PROMPTS)
    : Array.from({ length: random.between(1, 25) }, () => random.pick(WORDS)).join(" ");
  return [...state.model.tokenize(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)];
}

function forkOf(state: SoakState, sequence: LlamaSequence, log: ConversationLog): [LlamaSequence, ConversationLog] {
  state.counts.forks++;
  return [sequence.fork(), log.fork()];
}

async function prefill(state: SoakState, sequence: LlamaSequence, log: ConversationLog, delta: number[]) {
  const weights = state.weights;
  await sequence.prefill(delta);
  state.counts.prefills++;
  log.add({
    delta,
    request: null,
    tokenIds: new Int32Array(0),
    logprobs: new Float32Array(0),
    finishReason: "stop",
    text: "",
    reused: null,
    weights: state.weights === weights ? weights : null,
  });
}

/** Turns of one sequence until it is full or leaves; forks of it are awaited too. */
async function talk(
  state: SoakState,
  random: SeededRandom,
  sequence: LlamaSequence,
  log: ConversationLog,
  firstDelta: number[],
): Promise<void> {
  const forks: Promise<void>[] = [];
  let delta = firstDelta;
  for (let left = random.between(1, 5); left > 0 && !state.stopping; left--) {
    const request = makeRequest(random, log.family.temperature);
    if (sequence.tokenCount + delta.length + request.maxTokens > state.model.info.contextSize) break;
    const leaves = random.chance(0.04);
    const turn = await takeTurn(state, random, sequence, delta, request, leaves);
    log.add(turn);
    if (leaves) break;
    if (random.chance(0.15)) {
      const [fork, forkLog] = forkOf(state, sequence, log);
      forks.push(talk(state, random.derive(left), fork, forkLog, makeDelta(state, random)));
    }
    if (random.chance(0.3)) await sleep(random.between(0, 40));
    delta = makeDelta(state, random);
  }
  sequence.dispose();
  await Promise.all(forks);
}

/** What others add between two turns; sometimes nothing, sometimes a single token. */
function makeDelta(state: SoakState, random: SeededRandom): number[] {
  if (random.chance(0.1)) return [];
  const text = Array.from({ length: random.between(1, 6) }, () => random.pick(WORDS)).join(" ");
  return [...state.model.tokenize(text)].slice(0, random.chance(0.1) ? 1 : 30);
}

function makeRequest(random: SeededRandom, temperature: number): NonNullable<Turn["request"]> {
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
  sequence: LlamaSequence,
  delta: number[],
  request: NonNullable<Turn["request"]>,
  leaves: boolean,
): Promise<Turn> {
  const weights = state.weights;
  const chunks: string[] = [];
  const streams = random.chance(0.2);
  const aborts = random.chance(0.12) ? random.between(0, 25) : null;
  const signal = aborts === null ? undefined : AbortSignal.timeout(aborts);
  const running = sequence.generate(delta, {
    ...request,
    signal: aborts === 0 ? AbortSignal.abort() : signal,
    ...(streams ? { onText: (text: string) => chunks.push(text) } : {}),
  });
  if (leaves) {
    await sleep(random.between(0, 15));
    sequence.dispose();
    state.counts.disposedInFlight++;
  }
  const result: GenerateResult = await running;
  state.counts.generations++;
  state.counts.sampledTokens += result.tokenIds.length;
  if (result.finishReason === "aborted") state.counts.aborted++;
  else if (streams && chunks.join("") !== result.text)
    state.fail(`streamed ${JSON.stringify(chunks.join(""))} of ${JSON.stringify(result.text)}`);
  return {
    delta,
    request,
    tokenIds: result.tokenIds,
    logprobs: result.logprobs,
    finishReason: result.finishReason,
    text: result.text,
    reused: result.stats.reusedTokens,
    weights: state.weights === weights ? weights : null,
  };
}
