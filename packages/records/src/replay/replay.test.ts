import type { ChatMessage } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import { startRollouts } from "@cria/rollout";
import { listToolSchemas } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import { BaseInteraction, tool } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import { expect, it } from "vitest";
import { z } from "zod";
import { type DumpLine, describeTrajectories } from "../internal.js";
import { RecordedAnswers, type RecordedAnswersOptions } from "./recorded-answers.js";
import { type Change, Steering } from "./steered-sequence.js";

const call = (word: string) => `<tool_call>\n{"name": "look_up", "arguments": {"word": "${word}"}}\n</tool_call>`;

/** Looks a word up, says it, and is asked for more: its answers depend only on the conversation. */
function speak({ text }: FakeContext): string {
  const turns = text.split("<|im_start|>assistant\n");
  if (turns.at(-1) !== "") return " and so on";
  if (turns.length === 2) return call("ant");
  if (turns.length === 3) return `it is: ${/is ([a-z]+)<\|im_end\|>/.exec(turns[1]!)?.[1] ?? "nothing"}`;
  return "no more";
}

function open(production = false) {
  const heard: string[] = [];
  class Curious extends BaseInteraction {
    override async startInteraction() {
      heard.push("start");
    }
    override async generateResponse(_id: string, messages: readonly ChatMessage[]) {
      heard.push(`asked after ${messages.at(-1)!.content}`);
      return { shouldTerminate: messages.length > 5, content: "more?", score: 1 };
    }
    override async calculateScore() {
      return 0.5;
    }
    override async finalizeInteraction() {}
  }
  const lookUp = tool({
    name: "look_up",
    description: "Looks a word up.",
    inputSchema: z.object({ word: z.string() }),
    execute: ({ word }) => {
      heard.push(`look up ${word}`);
      return `the ${word} is small`;
    },
  });
  const rollout = makeFakeRollout({
    reply: speak,
    tools: [lookUp],
    interactions: [new Curious({}, "test")],
    multiTurn: { useInferenceChatTemplate: production },
  });
  return { ...rollout, heard };
}

type Opened = ReturnType<typeof open>;

async function record({ engine, options, run }: Opened): Promise<DumpLine> {
  const trajectories = await run();
  return describeTrajectories(trajectories, { step: 1, rows: [makeRow()], tools: options.tools, engine })[0]!;
}

async function holdAgain(
  { engine, options }: Opened,
  line: DumpLine,
  change: Change | null = null,
  answers: Omit<RecordedAnswersOptions, "readCalls"> = {},
) {
  const { parse } = resolveToolFormat(options.multiTurn.format);
  const readCalls = (text: string) => parse(text, listToolSchemas(options.tools, makeRow())).calls;
  const replay = {
    seed: line.sampling!.seed,
    steer: new Steering(engine, change).steer,
    answers: new RecordedAnswers(line, { ...answers, readCalls }),
  };
  const { conversations, finish } = await startRollouts(engine, [makeRow()], { ...options, replay: () => replay });
  await finish();
  return conversations[0]!;
}

it.each([false, true])("asks nobody, and gives the recorded answers (production's view: %s)", async (production) => {
  const opened = open(production);
  const line = await record(opened);
  expect(line.messages.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
    "user",
    "assistant",
  ]);
  expect(opened.heard).toHaveLength(4);
  const again = await holdAgain(opened, line);
  expect(opened.heard).toHaveLength(4);
  expect([...again.tokenIds]).toEqual(line.token_ids);
  expect([...again.rolloutLogprobs].map((x) => Number(x.toPrecision(9)))).toEqual(line.rollout_logprobs);
  expect(again.messages).toEqual(line.messages);
  expect(again.finishReason).toBe(line.finish_reason);
  expect(again.timeline!.turns.map(({ failures }) => failures)).toEqual(line.turns.map(({ failures }) => failures));
  expect(again.sampling!.seed).toBe(line.sampling!.seed);
  expect(opened.engine.counts.created).toBe(opened.engine.counts.disposed);
});

it("with tools that run keeps the record's answers before the change, and names the differences", async () => {
  const opened = open();
  const line = await record(opened);
  line.messages[2] = { ...line.messages[2]!, content: "the ant is tiny" };
  opened.heard.length = 0;
  const said: string[] = [];
  const others: [string, string][] = [];
  const change: Change = { turn: 3, keep: 0, next: null, seed: 5 };
  const again = await holdAgain(opened, line, change, {
    isLive: true,
    changedTurn: 3,
    onMessage: ({ content }) => said.push(String(content)),
    onOtherAnswer: (recorded, live) => others.push([recorded, live]),
  });
  expect(opened.heard.slice(0, 2)).toEqual(["start", "look up ant"]);
  expect(again.messages[2]!.content).toBe("the ant is tiny");
  expect(others).toEqual([["the ant is tiny", "the ant is small"]]);
  expect(again.interactionScore).toBe(0.5);
  // The conversation ends with the changed turn: nobody said anything after it.
  expect(said).toEqual([]);
});

it("keeps an inserted token, and samples the tokens after it", async () => {
  const opened = open();
  const line = await record(opened);
  const { start } = line.turns[0]!;
  const [letter] = opened.engine.tokenize("X");
  const pieces: string[] = [];
  const change: Change = { turn: 1, keep: 0, next: letter!, seed: 5, onText: (text) => pieces.push(text) };
  const again = await holdAgain(opened, line, change, { isLive: true, changedTurn: 1 });
  expect([...again.tokenIds.subarray(0, start + 1)]).toEqual([...line.token_ids.slice(0, start), letter]);
  expect(again.messages[1]!.content).toBe("X and so on");
  expect(pieces.slice(0, 2)).toEqual(["X", " and so on"]);
  expect(again.rolloutLogprobs[start + 1]).toBe(Math.fround(opened.engine.logprobAt(again.tokenIds, start + 1)));
  // One that ends the turn ends it.
  const [end] = opened.engine.info.endOfGenerationTokens;
  const ended = await holdAgain(opened, line, { ...change, next: end! }, { isLive: true, changedTurn: 1 });
  expect(ended.messages[1]!.content).toBe("");
});

it("stops before a token, as aborted", async () => {
  const opened = open();
  const line = await record(opened);
  const second = line.turns.filter(({ role }) => role === "assistant")[1]!;
  for (const keep of [0, 2]) {
    // The scripted model says a turn's text from its beginning: as many tokens of it as are asked for.
    const again = await holdAgain(opened, line, { turn: 2, keep, next: "stop", seed: 0 });
    expect([...again.tokenIds]).toEqual(line.token_ids.slice(0, second.start + keep));
    expect(again.finishReason).toBe("aborted");
  }
});

it("needs live tools where a call, or words to an interaction, were not recorded", async () => {
  const opened = open();
  const line = await record(opened);
  const other = (index: number, content: string): DumpLine => ({
    ...line,
    messages: line.messages.with(index, { ...line.messages[index]!, content }),
  });
  for (const changed of [
    other(1, call("bee")),
    other(3, "something else"),
    { ...line, messages: line.messages.slice(0, 1) },
  ]) {
    await expect(holdAgain(opened, changed)).rejects.toMatchObject({ code: "replay/needs-live-tools" });
    const aborted = await holdAgain(opened, changed, null, { onOtherTurn: "abort" });
    expect(aborted.finishReason).toBe("aborted");
  }
  // Other words around the same call are no other call.
  expect((await holdAgain(opened, other(1, `Well. ${call("ant")}`), null, {}).catch((error) => error)).code).toBe(
    // But the interaction after it reads the whole conversation.
    "replay/needs-live-tools",
  );
  expect(opened.heard).toHaveLength(4);
});
