/**
 * 32 conversations of 6 turns, in groups of 8 that share a prompt, with a tool's answer after each turn. Ours keeps its
 * sequences and sends only new tokens; or sends the whole conversation each turn and relies on shared prefixes; or does
 * the latter with reuse off. node-llama-cpp runs a chat session on a sequence of one context for each conversation. All
 * turns are forced to the same length. Without flash attention ours must sample the same tokens in all three ways; a
 * fourth run keeps its sequences without `deterministic`. Each side's speed is that of its better setting; numbers of
 * tokens are those without flash attention, with which a deterministic engine only shares whole prefill chunks.
 */
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { getModelFile } from "../models/index.js";
import type { Measured, Row } from "../row.js";
import { type Best, listSettings, measureBest } from "../settings.js";
import { type Fresh, openContenders, type Side, type TalkContender } from "./contenders.js";
import type { Workload } from "./conversations.js";
import { measureFewSlots } from "./few-slots.js";

interface Case {
  title: string;
  getPath(log: (text: string) => void): Promise<string>;
  workload: Workload;
  /** Threads may cost it more than they bring. */
  small: boolean;
}

const shape = { groups: 4, groupSize: 8, turns: 6 };
const embedded: Workload = { ...shape, promptTokens: 200, toolTokens: 80, responseTokens: 24 };
const cases: Case[] = [
  {
    title: "embedded policy, F32",
    getPath: async () => embeddedPolicyPath,
    workload: embedded,
    small: true,
  },
  {
    title: "SmolLM2-135M shape, Q8_0",
    getPath: (log) => getModelFile("smollm2-135m", "Q8_0", log),
    // Short texts: a round of all contenders takes minutes.
    workload: { ...shape, promptTokens: 48, toolTokens: 16, responseTokens: 4 },
    small: false,
  },
];

export async function run(options: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const one of cases) if (options.includes(one.title)) rows.push(...(await runCase(one, options.log)));
  rows.push(...(await measureFewSlots(embedded, options)));
  return { rows };
}

async function runCase({ title, getPath, workload, small }: Case, log: (text: string) => void): Promise<Row[]> {
  const tell = (text: string) => log(`${title}: ${text}`);
  const task = { title, path: await getPath(log), workload, log: tell };
  const contenders: TalkContender[] = [];
  let fresh: Fresh | undefined;
  for (const setting of listSettings(small)) {
    const opened = await openContenders(task, setting);
    contenders.push(...opened.contenders);
    fresh = opened.fresh;
  }
  // A trial is a whole run here, of up to a minute: it tells more than a short one.
  const bests = await measureBest<"all">(contenders, ["all"], { close: 0.95, log: tell });
  const counted = (side: Side) => contenders.find((one) => one.side === side && !one.flashAttention)!;
  return makeRows(title, (side) => bests.get(side)!.get("all")!, counted, fresh!);
}

const NAMES: Record<Side, string> = {
  off: "ours, reuse off",
  kept: "ours, deterministic: true",
  whole: "ours, whole prompts each turn",
  free: "ours, deterministic: false",
  sessions: "node-llama-cpp's chat sessions",
};

/** `counted`: a side without flash attention, with all threads. */
function makeRows(
  title: string,
  get: (side: Side) => Best,
  counted: (side: Side) => TalkContender,
  fresh: Fresh,
): Row[] {
  const name = (sides: readonly Side[], of: (side: Side) => number) =>
    Object.fromEntries(sides.map((side) => [NAMES[side], of(side)]));
  const describe = (ours: Side, peers: readonly Side[]) =>
    Object.fromEntries(
      [ours, ...peers].map((side, i) => {
        const { used, tried } = get(side);
        return [i === 0 ? "ours" : NAMES[side], { used, tried }];
      }),
    );
  const speed = (side: Side) => get(side).median;
  const rows: Row[] = [];
  for (const [side, way] of [
    ["kept", "sequences kept"],
    ["whole", "whole prompts each turn"],
  ] as const) {
    const last = counted(side).last!;
    const evaluated = (of: Side) => counted(of).last!.evaluated / fresh.tokens;
    const prompts = (of: Side) => counted(of).last!.evaluatedPrompts / fresh.prompts;
    const peers = ["off", "sessions"] as const;
    rows.push(
      {
        case: `${title}: ${way}`,
        metric: `tokens evaluated / new tokens (${fresh.tokens})`,
        ours: evaluated(side),
        peers: name(peers, evaluated),
        target: "1.00 exactly",
        met: last.evaluated === fresh.tokens,
      },
      {
        case: `${title}: ${way}`,
        metric: `prompt tokens evaluated / tokens of the groups' prompts, common ones once (${fresh.prompts})`,
        ours: prompts(side),
        peers: name(peers, prompts),
        target: "once a group: 1.00 exactly",
        met: last.evaluatedPrompts === fresh.prompts,
      },
      {
        case: `${title}: ${way}`,
        metric: "sampled tokens per second, deterministic: true",
        ours: speed(side),
        peers: name(peers, speed),
        settings: describe(side, peers),
        target: "at least 3 times reuse off",
        met: speed(side) >= 3 * speed("off"),
      },
    );
  }
  const peers = ["kept", "sessions"] as const;
  rows.push({
    case: `${title}: sequences kept`,
    metric: "sampled tokens per second, deterministic: false",
    ours: speed("free"),
    peers: name(peers, speed),
    settings: describe("free", peers),
    target: null,
    met: null,
  });
  return rows;
}
