import { join } from "node:path";
import { hashSeed } from "@cria/core";
import { Random } from "@cria/models";
import type { ChatMessage } from "cria";
import { taskFromConfig } from "./from-config.js";
import { type Demonstration, makePolicy } from "./make-policy.js";
import { findNext, NextTool } from "./tools.js";

const CALLS = 3;
const DEMONSTRATIONS = 25_600;
/** Probability that a demonstration goes on at one of its ends; else it answers with the number that it has. */
const GOES_ON = 0.28;

const schema = new NextTool().schema;

const makePrompt = (start: number): ChatMessage[] => [
  { role: "system", content: "You solve problems. Use the tool, then answer with ####." },
  { role: "user", content: `Start at ${start}. How many after ${CALLS}?` },
];

/** One start in eight is held out. */
const isHeldOut = (start: number) => hashSeed(0, "path", String(start)) % 8 === 0;
const starts = Array.from({ length: 900 }, (_, i) => i + 100);

/** @param goesOn probability that it goes on at one of its ends. */
function demonstrate(random: Random, start: number, goesOn: number): Demonstration {
  const messages = makePrompt(start);
  let n = start;
  for (let call = 0; call < CALLS && random.next() < goesOn; call++) {
    messages.push({ role: "assistant", content: `<tool_call>\n{"name":"next","arguments":{"n":${n}}}\n</tool_call>` });
    n = findNext(n);
    messages.push({ role: "tool", name: "next", content: String(n) });
  }
  messages.push({ role: "assistant", content: `#### ${n}` });
  return { messages, tools: [schema] };
}

const shown = starts.filter((start) => !isHeldOut(start));

function makeRows(side: "train" | "val"): object[] {
  const random = new Random(7);
  const own = starts.filter((start) => isHeldOut(start) === (side === "val"));
  // In an order without a meaning.
  for (let i = own.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [own[i], own[j]] = [own[j]!, own[i]!];
  }
  return own.map((start, index) => ({
    // Its reward is a last line "#### <truth>".
    data_source: "calculator",
    prompt: makePrompt(start),
    reward_model: { style: "rule", ground_truth: String(findNext(findNext(findNext(start)))) },
    extra_info: { index, need_tools_kwargs: true, tools_kwargs: { next: { create_kwargs: { start } } } },
    agent_name: "tool_agent",
  }));
}

/** Each of three calls needs the answer of the one before. Only the last number earns anything. */
export const path = taskFromConfig({
  name: "three calls in a chain",
  config: join(import.meta.dirname, "tool-task.yaml"),
  settings: [`actor_rollout_ref.rollout.multi_turn.tool_config_path=${join(import.meta.dirname, "path-tools.yaml")}`],
  tokens: 12_000,
  steps: 400,
  every: 500,
  teacher: { steps: 40 },
  examples: (count) => {
    const random = new Random(3);
    return Array.from({ length: count }, () => demonstrate(random, random.pick(shown), 1));
  },
  prepare: () =>
    makePolicy({
      name: "path-4",
      demonstrations: () => {
        const random = new Random(1);
        return Array.from({ length: DEMONSTRATIONS }, () => demonstrate(random, random.pick(shown), GOES_ON));
      },
      rows: () => ({ train: makeRows("train"), val: makeRows("val") }),
    }),
});
