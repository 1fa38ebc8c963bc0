import type { LlamaModel, LlamaSequence } from "@cria/engine";
import { type Conversation, chooseSeed, renderDelta, renderPrompt, type Workload } from "./conversations.js";

export interface RunResult {
  seconds: number;
  /** Sampled tokens of each conversation. */
  sampled: number[][];
  /** Tokens that went through the model. */
  evaluated: number;
  /** Evaluated tokens in the first turn, before sampling. */
  evaluatedPrompts: number;
}

/** Appends to a conversation and samples the next turn. */
type Ask = (delta: Int32Array, seed: number) => Promise<Int32Array>;

interface Talk {
  conversation: Conversation;
  prompt: Int32Array;
  deltas: Int32Array[];
}

/** Texts as tokens, once for all runs: tokenizing is not measured. */
export function prepareTalks(model: LlamaModel, conversations: readonly Conversation[]): Talk[] {
  return conversations.map((conversation) => ({
    conversation,
    prompt: model.tokenize(renderPrompt(conversation)),
    deltas: conversation.toolTexts.map((text) => model.tokenize(renderDelta(text))),
  }));
}

/**
 * Sequences are kept and forked from their group's prompt; each turn sends only new tokens, as Cria's agent loops do.
 */
export async function runKept(model: LlamaModel, talks: readonly Talk[], workload: Workload): Promise<RunResult> {
  return runTalks(model, talks, workload, async (start) => {
    const roots = new Map<number, Promise<LlamaSequence>>();
    for (const { conversation, prompt } of talks) {
      if (roots.has(conversation.group)) continue;
      const root = model.createSequence();
      roots.set(
        conversation.group,
        root.prefill(prompt).then(() => root),
      );
    }
    await Promise.all(
      talks.map(async (talk) => {
        const sequence = (await roots.get(talk.conversation.group)!).fork();
        let isFirst = true;
        await start(talk, async (delta, seed) => {
          const { tokenIds } = await sequence.generate(isFirst ? [] : delta, sample(workload, seed));
          isFirst = false;
          return tokenIds;
        });
        sequence.dispose();
      }),
    );
    for (const root of roots.values()) (await root).dispose();
  });
}

/** Each turn sends the whole conversation through a new sequence, like callers of a stateless server. */
export async function runWhole(model: LlamaModel, talks: readonly Talk[], workload: Workload): Promise<RunResult> {
  return runTalks(model, talks, workload, async (start) => {
    await Promise.all(
      talks.map(async (talk) => {
        let whole: number[] = [];
        await start(talk, async (delta, seed) => {
          const sequence = model.createSequence();
          const { tokenIds } = await sequence.generate([...whole, ...delta], sample(workload, seed));
          sequence.dispose();
          whole = [...whole, ...delta, ...tokenIds];
          return tokenIds;
        });
      }),
    );
  });
}

function sample({ responseTokens }: Workload, seed: number) {
  return { maxTokens: responseTokens, temperature: 1, seed, stopTokens: [] };
}

async function runTalks(
  model: LlamaModel,
  talks: readonly Talk[],
  { turns }: Workload,
  run: (start: (talk: Talk, ask: Ask) => Promise<void>) => Promise<void>,
): Promise<RunResult> {
  await model.flushCache();
  const before = model.schedulerStats();
  const sampled: number[][] = talks.map(() => []);
  let prefilled = 0;
  let ended = 0;
  const started = performance.now();
  await run(async (talk, ask) => {
    const index = talks.indexOf(talk);
    const mine = sampled[index]!;
    for (let turn = 0; turn < turns; turn++) {
      mine.push(...(await ask(turn === 0 ? talk.prompt : talk.deltas[turn - 1]!, chooseSeed(index, turn))));
      // All prompts are there when the first turn of any conversation has ended; no delta is yet.
      if (turn === 0 && ended++ === 0) prefilled = model.schedulerStats().prefillTokens;
    }
  });
  const seconds = (performance.now() - started) / 1000;
  const after = model.schedulerStats();
  // The last token that a turn samples is not evaluated before the next turn's first.
  const decoded = after.decodeTokens - before.decodeTokens - talks.length * turns;
  return {
    seconds,
    sampled,
    evaluated: after.prefillTokens - before.prefillTokens + decoded,
    evaluatedPrompts: prefilled - before.prefillTokens,
  };
}

/** Tokens evaluated when each is evaluated once: prompts, deltas, and sampled tokens except the last. */
export function countNewTokens(talks: readonly Talk[], { turns, responseTokens }: Workload): number {
  const sum = (deltas: readonly Int32Array[]) => deltas.reduce((total, delta) => total + delta.length, 0);
  return (
    countPromptTokens(talks) +
    talks.reduce((total, { deltas }) => total + sum(deltas.slice(0, turns - 1)) + turns * responseTokens - 1, 0)
  );
}

/** Tokens of the groups' prompts; a beginning that several share (here the same system prompt) counts once. */
export function countPromptTokens(talks: readonly Talk[]): number {
  const prompts = talks.map(({ prompt }) => prompt).sort(compareTokens);
  return prompts.reduce((sum, prompt, i) => {
    const before = prompts[i - 1];
    const different = before ? prompt.findIndex((token, t) => token !== before[t]) : 0;
    return sum + (different < 0 ? 0 : prompt.length - different);
  }, 0);
}

function compareTokens(a: Int32Array, b: Int32Array): number {
  const different = a.findIndex((token, t) => token !== b[t]);
  return different < 0 ? a.length - b.length : a[different]! - (b[different] ?? -1);
}
