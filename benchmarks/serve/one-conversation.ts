/**
 * One conversation at a time, like a chatting user, with the defaults of `cria serve`: tokens a second of an answer
 * from its first text on, compared with llama-batched-bench, which samples nothing and sends nothing; and the tokens
 * evaluated for a follow-up question of a long conversation, compared with llama-server. In turn, in one run.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { getModelFile } from "../models/index.js";
import { runBatchedBench } from "../peers/batched-bench.js";
import type { Row } from "../row.js";
import { listSettings, nameSetting, THREADS } from "../settings.js";
import { runLoad, type Seen } from "./load.js";
import { type Server, startCria, startPeer } from "./servers.js";

const ROUNDS = 7;
/** Least share of pure decoding's speed that a chat client must reach. */
const SHARE = 0.95;

interface Case {
  title: string;
  getPath(log: (text: string) => void): Promise<string>;
  /** Tokens of an answer at most. */
  maxTokens: number;
}

const cases: Case[] = [
  {
    title: "SmolLM2-135M shape, Q8_0",
    getPath: (log) => getModelFile("smollm2-135m", "Q8_0", log),
    maxTokens: 192,
  },
  {
    title: "Qwen2.5-0.5B shape, Q8_0",
    getPath: (log) => getModelFile("qwen2.5-0.5b", "Q8_0", log),
    maxTokens: 96,
  },
  {
    title: "Qwen2.5-0.5B shape, Q4_K_M",
    getPath: (log) => getModelFile("qwen2.5-0.5b", "Q4_K_M", log),
    maxTokens: 96,
  },
];

export async function runOneConversation({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const one of cases) {
    const title = `${one.title}: one conversation`;
    if (includes(title)) rows.push(await measureDecode(one, title, log));
  }
  const title = "SmolLM2-135M shape, Q8_0: follow-up question after 4,000 tokens";
  if (includes(title)) rows.push(...(await measureFollowUp(title, log)));
  return rows;
}

async function measureDecode(one: Case, title: string, log: (text: string) => void): Promise<Row> {
  const path = await one.getPath(log);
  const server = await startCria(path);
  const speeds: number[] = [];
  const peers = listSettings(false).map((setting) => ({ setting, speeds: [] as number[] }));
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const { seen, steps } = await answer(server, one, round);
      const speed = median(seen.decode);
      if (round > 0) speeds.push(speed);
      const tried: string[] = [];
      for (const peer of peers) {
        const found = await runBatchedBench(
          { path, ...peer.setting, contextSize: 512, promptLength: 32, steps, sequences: [1] },
          () => {},
        );
        tried.push(`${nameSetting(peer.setting)} ${found.get(1)!.toFixed(0)}`);
        if (round > 0) peer.speeds.push(found.get(1)!);
      }
      log(`${title}: ${speed.toFixed(1)} tokens/s over ${steps} tokens; llama-batched-bench: ${tried.join(", ")}`);
    }
  } finally {
    await server.close();
  }
  const best = peers.reduce((a, b) => (median(b.speeds) > median(a.speeds) ? b : a));
  const [ours, limit] = [median(speeds), median(best.speeds)];
  return {
    case: title,
    metric: "tokens per second after the first text",
    ours,
    peers: { "llama-batched-bench": limit },
    settings: {
      ours: { used: "defaults", tried: { defaults: ours } },
      "llama-batched-bench": {
        used: nameSetting(best.setting),
        tried: Object.fromEntries(peers.map((peer) => [nameSetting(peer.setting), median(peer.speeds)])),
      },
    },
    target: `at least ${SHARE} of llama-batched-bench`,
    met: ours >= SHARE * limit,
  };
}

/** One answer, and how many tokens it has. */
async function answer({ url }: Server, { maxTokens }: Case, round: number) {
  const ask = (conversation: number) => `Emma has ${100 + conversation} stamps and loses 7. How many are left?`;
  const load = { clients: 1, conversations: 1, system: "You solve problems.", ask, turns: 1, maxTokens };
  const seen = await runLoad(url, load, round);
  return { seen, steps: seen.tokens };
}

/** Words of this question's own: about 3,900 tokens the first time, 20 after that. */
function askLong(conversation: number, turn: number): string {
  const count = turn === 0 ? 1000 : 8;
  return Array.from({ length: count }, (_, i) => `word${(conversation * 131 + turn * 17 + i * 7) % 1000}`).join(" ");
}

async function measureFollowUp(title: string, log: (text: string) => void): Promise<Row[]> {
  const path = await getModelFile("smollm2-135m", "Q8_0", log);
  const context = { path, contextSize: 5120, parallel: 1, threads: THREADS, log };
  const sides: { server: Server; seen: Seen[] }[] = [];
  try {
    sides.push({ server: await startCria(path, ["--ctx", context.contextSize]), seen: [] });
    sides.push({ server: await startPeer(context), seen: [] });
    for (let round = 0; round < 3; round++)
      for (const { server, seen } of sides) {
        const load = { clients: 1, conversations: 1, system: "You go on.", ask: askLong, turns: 2, maxTokens: 16 };
        const result = await runLoad(server.url, load, round);
        const [whole, added] = result.evaluated;
        log(
          `${title}: ${server.name} evaluated ${whole}, then ${added} tokens; first text after ${result.first.map(Math.round)} ms`,
        );
        seen.push(result);
      }
  } finally {
    for (const { server } of sides) await server.close();
  }
  const [mine, its] = sides.map(
    ({ seen }) =>
      (of: (one: Seen) => number) =>
        median(seen.map(of)),
  );
  const make = (
    metric: string,
    of: (one: Seen) => number,
    target: string,
    isMet: (a: number, b: number) => boolean,
  ) => {
    const [ours, peer] = [mine!(of), its!(of)];
    return { case: title, metric, ours, peers: { "llama-server": peer }, target, met: isMet(ours, peer) };
  };
  return [
    make(
      "tokens evaluated before the answer",
      ({ evaluated }) => evaluated[1]!,
      "no more than llama-server",
      (ours, peer) => ours <= peer,
    ),
    make(
      "milliseconds to the first text",
      ({ first }) => first[1]!,
      "at least level",
      (ours, peer) => ours <= peer,
    ),
  ];
}
