/**
 * 32 conversations of 6 turns, in groups of 8 that share a prompt, with a tool's answer after each turn. Ours keeps its
 * sequences and sends what is new; or sends the whole conversation each turn and relies on shared prefixes; or does the
 * latter with reuse off. node-llama-cpp runs a chat session on a sequence of one context for each conversation.
 * All turns are forced to the same length. Ours must sample the same tokens in all three ways.
 */
import { availableParallelism } from "node:os";
import { type LlamaModel, loadModel } from "@cria/engine";
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { compareRuns } from "../measure.js";
import { getModelFile } from "../models/index.js";
import type { Row } from "../row.js";
import { type ChatSessions, openChatSessions } from "./chat-sessions.js";
import { type Workload, writeConversations } from "./conversations.js";
import { countNewTokens, countPromptTokens, prepareTalks, type RunResult, runKept, runWhole } from "./run-ours.js";

interface Case {
  title: string;
  getPath(log: (text: string) => void): Promise<string>;
  workload: Workload;
  /** Rounds that are not counted. */
  warmUp: number;
  /** node-llama-cpp's, where its best is not all. */
  sessionThreads?: number;
}

const shape = { groups: 4, groupSize: 8, turns: 6 };
const cases: Case[] = [
  {
    title: "embedded policy, F32",
    getPath: async () => embeddedPolicyPath,
    workload: { ...shape, promptTokens: 200, toolTokens: 80, responseTokens: 24 },
    warmUp: 1,
    sessionThreads: 1,
  },
  {
    title: "SmolLM2-135M shape, Q8_0",
    getPath: (log) => getModelFile("smollm2-135m", "Q8_0", log),
    // Short texts: a round of all contenders takes minutes.
    workload: { ...shape, promptTokens: 48, toolTokens: 16, responseTokens: 4 },
    warmUp: 0,
  },
];

const threads = Number(process.env.CRIA_BENCHMARK_THREADS ?? availableParallelism());

export async function run({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const one of cases) if (includes(one.title)) rows.push(...(await runCase(one, log)));
  return rows;
}

type Contender = "kept" | "whole" | "off" | "sessions";

async function runCase(
  { title, getPath, workload, warmUp, sessionThreads = threads }: Case,
  log: (text: string) => void,
): Promise<Row[]> {
  const path = await getPath(log);
  const count = workload.groups * workload.groupSize;
  // Words are tokens and delimiters a few more: room for them, and for tokens that a session renders otherwise.
  const contextSize =
    workload.promptTokens + workload.turns * (workload.toolTokens + workload.responseTokens + 32) + 128;
  const load = (prefixReuse: boolean) => loadModel({ path, contextSize, maxSequences: count, threads, prefixReuse });
  const opened: { dispose(): Promise<void> }[] = [];
  const open = async <T extends LlamaModel | ChatSessions>(promise: Promise<T>): Promise<T> => {
    const resource = await promise;
    opened.push(resource);
    return resource;
  };
  try {
    const reusing = await open(load(true));
    const off = await open(load(false));
    const conversations = writeConversations(workload, (text) => reusing.tokenize(text).length);
    const talks = prepareTalks(reusing, conversations);
    const sessions = await open(
      openChatSessions({ path, conversations, workload, contextSize, threads: sessionThreads }),
    );
    const contenders: Record<Contender, () => Promise<RunResult>> = {
      kept: () => runKept(reusing, talks, workload),
      whole: () => runWhole(reusing, talks, workload),
      off: () => runWhole(off, talks, workload),
      sessions: () => sessions.run(),
    };
    const last = {} as Record<Contender, RunResult>;
    const timed = (name: Contender) => async () => {
      const result = await contenders[name]();
      log(`${title}: ${name} ${result.seconds.toFixed(1)} s, ${result.evaluated} tokens evaluated`);
      last[name] = result;
      check(name, result, workload, last.off);
      return result.sampled.reduce((sum, tokens) => sum + tokens.length, 0) / result.seconds;
    };
    // Each run is checked before it counts; "off" comes first, for the others are compared with it.
    const inTurn = { off: timed("off"), kept: timed("kept"), whole: timed("whole"), sessions: timed("sessions") };
    const figures = await compareRuns(inTurn, { warmUp, rounds: 5 });
    return makeRows(title, last, figures, {
      tokens: countNewTokens(talks, workload),
      prompts: countPromptTokens(talks),
    });
  } finally {
    for (const resource of opened) await resource.dispose();
  }
}

/** Ours: every turn as long as asked, and the same tokens whatever was reused. */
function check(name: Contender, { sampled }: RunResult, { turns, responseTokens }: Workload, off: RunResult): void {
  const expected = turns * responseTokens;
  if (name === "sessions") {
    // A session may end a turn early, at text that looks like the next speaker's: a few tokens in all.
    const total = sampled.reduce((sum, tokens) => sum + tokens.length, 0);
    if (total < 0.99 * expected * sampled.length || total > expected * sampled.length)
      throw new Error(`sessions: ${total} sampled tokens, not ${expected * sampled.length}`);
    return;
  }
  for (const [i, tokens] of sampled.entries()) {
    if (tokens.length !== expected)
      throw new Error(`${name}: conversation ${i} has ${tokens.length} sampled tokens, not ${expected}`);
    if (tokens.some((token, t) => token !== off.sampled[i]![t]))
      throw new Error(`${name}: conversation ${i} has other tokens than without reuse`);
  }
}

function makeRows(
  title: string,
  last: Record<Contender, RunResult>,
  figures: Record<Contender, { median: number }>,
  fresh: { tokens: number; prompts: number },
): Row[] {
  const peersOf = (of: (name: Contender) => number) => ({
    "ours, reuse off": of("off"),
    "node-llama-cpp's chat sessions": of("sessions"),
  });
  const ways: [Contender, string][] = [
    ["kept", "sequences kept"],
    ["whole", "whole prompts each turn"],
  ];
  return ways.flatMap(([name, way]): Row[] => {
    const evaluated = (contender: Contender) => last[contender].evaluated / fresh.tokens;
    const prompts = (contender: Contender) => last[contender].evaluatedPrompts / fresh.prompts;
    const speed = (contender: Contender) => figures[contender].median;
    return [
      {
        case: `${title}: ${way}`,
        metric: `tokens evaluated / new tokens (${fresh.tokens})`,
        ours: evaluated(name),
        peers: peersOf(evaluated),
        target: "1.00 exactly",
        met: last[name].evaluated === fresh.tokens,
      },
      {
        case: `${title}: ${way}`,
        metric: `prompt tokens evaluated / tokens of the groups' prompts, common ones once (${fresh.prompts})`,
        ours: prompts(name),
        peers: peersOf(prompts),
        target: "once a group: 1.00 exactly",
        met: last[name].evaluatedPrompts === fresh.prompts,
      },
      {
        case: `${title}: ${way}`,
        metric: "sampled tokens per second, median",
        ours: speed(name),
        peers: peersOf(speed),
        target: "at least 3 times reuse off",
        met: speed(name) >= 3 * speed("off"),
      },
    ];
  });
}
