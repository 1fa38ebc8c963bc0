/**
 * `cria serve` compared with llama-server: requests a second, time to the first text, and tokens a second, with 1, 8
 * and 32 clients that ask one question each time, or hold conversations. Both are separate processes with the same
 * model, threads and conversations at once, and answer the same texts in turn; no text is asked twice. Answers are
 * sampled, so their lengths differ a little.
 */
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { countCores } from "../machine.js";
import { median } from "../measure.js";
import { getModelFile } from "../models/index.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { type Load, runLoad, type Seen } from "./load.js";
import { runOneConversation } from "./one-conversation.js";
import { type Server, startOurs, startPeer } from "./servers.js";

const ROUNDS = 5;
const CLIENTS = [1, 8, 32];

interface Case {
  title: string;
  getPath(log: (text: string) => void): Promise<string>;
  contextSize: number;
  load: Omit<Load, "clients">;
  /** Tries one thread too: two may wait for each other longer than they work. */
  small: boolean;
  /** Our tokens a second over the peer's, by clients. */
  target(clients: number): number;
}

const level = () => 1;
const problem = (conversation: number, turn: number) =>
  `Emma has ${100 + conversation} stamps and loses ${10 + turn}. How many stamps are left?`;
const solving = { system: "You solve problems. Answer with ####.", ask: problem, maxTokens: 32 };
const words = (conversation: number, turn: number) =>
  `${conversation} ${Array.from({ length: 120 }, (_, i) => `word${(conversation * 131 + turn * 17 + i * 7) % 1000}`).join(" ")}`;

const cases: Case[] = [
  {
    title: "embedded policy, F32: single questions",
    getPath: async () => embeddedPolicyPath,
    contextSize: 512,
    small: true,
    load: { ...solving, conversations: 16, turns: 1 },
    target: level,
  },
  {
    title: "embedded policy, F32: conversations of 6 turns",
    getPath: async () => embeddedPolicyPath,
    contextSize: 512,
    small: true,
    load: { ...solving, conversations: 4, turns: 6 },
    target: (clients) => (clients === 32 ? 1.3 : 1),
  },
  {
    title: "SmolLM2-135M shape, Q8_0: single questions",
    getPath: (log) => getModelFile("smollm2-135m", "Q8_0", log),
    contextSize: 1024,
    small: false,
    load: { system: "You go on.", ask: words, maxTokens: 32, conversations: 1, turns: 1 },
    target: level,
  },
];

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = await runOneConversation({ includes, log });
  for (const one of cases)
    for (const clients of CLIENTS) {
      const title = `${one.title}, ${clients} ${clients === 1 ? "client" : "clients"}`;
      if (includes(title)) rows.push(...(await runCase(one, title, clients, log)));
    }
  return { rows };
}

async function runCase(one: Case, title: string, clients: number, log: (text: string) => void): Promise<Row[]> {
  const path = await one.getPath(log);
  const cores = Math.min(THREADS, countCores());
  const contenders: Contender[] = [];
  try {
    for (const threads of new Set([cores, ...(one.small ? [1] : [])]))
      for (const start of [startOurs, startPeer]) {
        const server = await start({ path, contextSize: one.contextSize, parallel: clients, threads, log });
        contenders.push({ server, setting: `${threads} ${threads === 1 ? "thread" : "threads"}`, seen: [] });
      }
    // The first round warms up; another order each round.
    for (let round = 0; round <= ROUNDS; round++)
      for (let i = 0; i < contenders.length; i++) {
        const { server, setting, seen } = contenders[(i + round) % contenders.length]!;
        const result = await runLoad(server.url, { ...one.load, clients }, round).catch((cause: unknown) => {
          throw new Error(`${server.name} failed, and said:\n${server.lastWords()}`, { cause });
        });
        const { seconds, requests, tokens } = result;
        log(`${title}: ${server.name}, ${setting}: ${requests} requests, ${tokens} tokens in ${seconds.toFixed(2)} s`);
        if (round > 0) seen.push(result);
      }
  } finally {
    for (const { server } of contenders) await server.close();
  }
  return makeRows(one, title, clients, contenders);
}

interface Contender {
  server: Server;
  setting: string;
  /** Observations of each counted round. */
  seen: Seen[];
}

const speedOf = ({ tokens, seconds }: Seen) => tokens / seconds;

/** Each side in the setting in which it is faster. */
function makeRows({ target }: Case, title: string, clients: number, contenders: readonly Contender[]): Row[] {
  const choose = (side: Server["name"]) => {
    const own = contenders.filter(({ server }) => server.name === side);
    const tried = own.map(({ setting, seen }) => [setting, median(seen.map(speedOf))] as const);
    const best = tried.reduce((a, b) => (b[1] > a[1] ? b : a));
    const { seen } = own.find(({ setting }) => setting === best[0])!;
    return { seen, setting: { used: best[0], tried: Object.fromEntries(tried) } };
  };
  const [mine, its] = [choose("ours"), choose("llama-server")];
  const wanted = target(clients);
  const words = wanted === 1 ? "at least level" : `at least ${wanted} times llama-server`;
  const make = (metric: string, of: (one: Seen) => number, isMet: (ours: number, peer: number) => boolean): Row => {
    const [ours, peer] = [median(mine.seen.map(of)), median(its.seen.map(of))];
    return {
      case: title,
      metric,
      ours,
      peers: { "llama-server": peer },
      settings: { ours: mine.setting, "llama-server": its.setting },
      target: words,
      met: isMet(ours, peer),
    };
  };
  return [
    make(
      "requests per second",
      ({ requests, seconds }) => requests / seconds,
      (ours, peer) => ours >= wanted * peer,
    ),
    make("sampled tokens per second", speedOf, (ours, peer) => ours >= wanted * peer),
    {
      ...make(
        "milliseconds to the first text, median",
        ({ first }) => median(first),
        (ours, peer) => ours <= peer,
      ),
      target: "at least level",
    },
  ];
}
