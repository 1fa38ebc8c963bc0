/** The sides of the multi-turn benchmark in one setting each. A contender has one case: the whole workload. */
import { type LlamaModel, loadModel } from "@cria/engine";
import { type Contender, nameSetting, type Setting } from "../settings.js";
import { openChatSessions } from "./chat-sessions.js";
import { sizeContext, type Workload, writeConversations } from "./conversations.js";
import { countNewTokens, countPromptTokens, prepareTalks, type RunResult, runKept, runWhole } from "./run-ours.js";

export type Side = "off" | "kept" | "whole" | "free" | "sessions";

export interface Task {
  title: string;
  path: string;
  workload: Workload;
  log(text: string): void;
}

export interface TalkContender extends Contender<"all"> {
  side: Side;
  flashAttention: boolean;
  /** The last run's. */
  last?: RunResult;
}

/** Tokens that are evaluated when each is once. */
export interface Fresh {
  tokens: number;
  prompts: number;
}

/**
 * Ours without reuse, with kept sequences, with whole prompts each turn, with kept sequences and `deterministic:
 * false`, and node-llama-cpp's chat sessions. The first must run first: others must sample its tokens.
 */
export async function openContenders(
  task: Task,
  setting: Setting,
): Promise<{ contenders: TalkContender[]; fresh: Fresh }> {
  const { path, workload } = task;
  const count = workload.groups * workload.groupSize;
  const contextSize = sizeContext(workload);
  const load = (options: { prefixReuse: boolean; deterministic: boolean }) =>
    loadModel({ path, contextSize, maxSequences: count, drafting: false, ...setting, ...options });
  const off = await load({ prefixReuse: false, deterministic: true });
  const reusing = await load({ prefixReuse: true, deterministic: true });
  const free = await load({ prefixReuse: true, deterministic: false });
  const conversations = writeConversations(workload, (text) => reusing.tokenize(text).length);
  const talks = prepareTalks(reusing, conversations);
  const sessions = await openChatSessions({ path, conversations, workload, contextSize, ...setting });

  const expected = new Map<Side, number[][]>();
  // With flash attention a token's KV has other bits when it was sampled than when it was part of a prompt: sequences
  // that are kept go another way than whole prompts, and always the same.
  const pattern: Record<Side, Side | null> = {
    off: "off",
    whole: "off",
    kept: setting.flashAttention ? "kept" : "off",
    free: null,
    sessions: null,
  };
  const make = (side: Side, run: () => Promise<RunResult>, dispose: () => Promise<void>): TalkContender => {
    const contender: TalkContender = {
      side,
      setting: nameSetting(setting),
      flashAttention: setting.flashAttention,
      run: async () => {
        const result = await run();
        task.log(`${side}, ${contender.setting}: ${result.seconds.toFixed(1)} s, ${result.evaluated} tokens evaluated`);
        if (!expected.has(side)) expected.set(side, result.sampled);
        checkRun(side, result, workload, pattern[side] && expected.get(pattern[side])!);
        contender.last = result;
        return new Map([["all", countSampled(result) / result.seconds]]);
      },
      dispose,
    };
    return contender;
  };
  return {
    contenders: [
      make(
        "off",
        () => runWhole(off, talks, workload),
        () => off.dispose(),
      ),
      ...shareModel(reusing, (dispose) => [
        make("kept", () => runKept(reusing, talks, workload), dispose),
        make("whole", () => runWhole(reusing, talks, workload), dispose),
      ]),
      make(
        "free",
        () => runKept(free, talks, workload),
        () => free.dispose(),
      ),
      make(
        "sessions",
        () => sessions.run(),
        () => sessions.dispose(),
      ),
    ],
    fresh: { tokens: countNewTokens(talks, workload), prompts: countPromptTokens(talks) },
  };
}

/** The model goes when all of its contenders are done. */
function shareModel(model: LlamaModel, make: (dispose: () => Promise<void>) => TalkContender[]): TalkContender[] {
  let users = 0;
  const contenders = make(async () => {
    if (--users === 0) await model.dispose();
  });
  users = contenders.length;
  return contenders;
}

const countSampled = ({ sampled }: RunResult) => sampled.reduce((sum, tokens) => sum + tokens.length, 0);

/** Ours: every turn as long as asked, and with `deterministic` the expected tokens. */
function checkRun(
  side: Side,
  result: RunResult,
  { turns, responseTokens }: Workload,
  expected: number[][] | null,
): void {
  const length = turns * responseTokens;
  const { sampled } = result;
  if (side === "sessions") {
    // A session may end a turn early, at text that looks like the next speaker's: a few tokens in all.
    const total = countSampled(result);
    if (total < 0.99 * length * sampled.length || total > length * sampled.length)
      throw new Error(`sessions: ${total} sampled tokens, not ${length * sampled.length}`);
    return;
  }
  for (const [i, tokens] of sampled.entries()) {
    if (tokens.length !== length)
      throw new Error(`${side}: conversation ${i} has ${tokens.length} sampled tokens, not ${length}`);
    if (expected && tokens.some((token, t) => token !== expected[i]![t]))
      throw new Error(`${side}: conversation ${i} has other tokens than expected`);
  }
}
