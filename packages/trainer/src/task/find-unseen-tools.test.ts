import type { ChatMessage, ToolSchema } from "@cria/core";
import { parseRow } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { tool } from "@cria/tools";
import { expect, it } from "vitest";
import { z } from "zod";
import type { Environment } from "./environment.js";
import { findUnseenTools } from "./find-unseen-tools.js";

const tools = new Map(
  ["weather", "stock"].map((name) => [
    name,
    tool({ name, description: "x", inputSchema: z.object({}), execute: () => "" }),
  ]),
);
const environment = { tools, defaultAgentLoop: "tool_agent" } as unknown as Environment;
const plain = (messages: readonly ChatMessage[]) => messages.map(({ content }) => content).join("\n");
const makePolicy = (render: (messages: readonly ChatMessage[], tools: readonly ToolSchema[]) => string) => ({
  tokenizer: { render } as unknown as DeltaTokenizer,
});
const row = (content: string, more: object = {}) =>
  parseRow({ data_source: "x", prompt: [{ role: "user", content }], ...more }, 0, "rows.jsonl:1");

it("warns if neither template nor prompts name a tool", () => {
  const rows = [row("hi"), row("hello")];
  expect(findUnseenTools(makePolicy(plain), environment, rows)).toMatch(/not told which tools[\s\S]*"weather"/);
  const listing = makePolicy((messages, given) => plain(messages) + JSON.stringify(given));
  expect(findUnseenTools(listing, environment, rows)).toBeNull();
  expect(findUnseenTools(makePolicy(plain), environment, [row("hi"), row("Tools: stock()")])).toBeNull();
});

it("looks at the tools of each row's conversations", () => {
  const policy = makePolicy(plain);
  const chosen = row("stock()", { extra_info: { tool_selection: ["weather"] } });
  expect(findUnseenTools(policy, environment, [chosen])).toContain('"weather"');
  expect(findUnseenTools(policy, environment, [row("hi", { agent_name: "single_turn_agent" })])).toBeNull();
  expect(findUnseenTools(policy, { ...environment, tools: new Map() }, [row("hi")])).toBeNull();
});
