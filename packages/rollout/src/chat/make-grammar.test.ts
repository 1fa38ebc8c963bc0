import { defineToolSchema, getToolFormat } from "@cria/tools";
import { matchesGrammar } from "@cria/tools/testing";
import { expect, it } from "vitest";
import { makeGrammar } from "./make-grammar.js";

const tools = [defineToolSchema("f", "", { type: "object", properties: { x: { type: "string" } } })];
const request = { messages: [], tools, toolChoice: "required" } as const;
/** Kimi K3's marks. */
const open = (tag: string) => `<|open|>${tag}<|sep|>`;
const close = (tag: string) => `<|close|>${tag}<|sep|>`;

it("allows thoughts before a demanded call where the template puts the tag together, and the prompt has opened them", () => {
  const template = "{{ '<|open|>' + tag + '<|sep|>' }}";
  const format = getToolFormat("kimi_k3");
  const response = open("response") + close("response");
  const call = `${open("tools")}${open('call tool="f" index="1"')}${close("call")}${close("tools")}`;
  const thinking = makeGrammar(request, { format, opening: open("think"), template })!;
  for (const turn of [`So.${close("think")}${response}${call}${close("message")}`, `${close("think")}${call}`])
    expect(matchesGrammar(thinking, turn), turn).toBe(true);
  for (const turn of [call, `So.${call}`, `${close("think")}So.${call}`])
    expect(matchesGrammar(thinking, turn), turn).toBe(false);
  const silent = makeGrammar(request, { format, opening: open("response"), template })!;
  expect(matchesGrammar(silent, close("response") + call)).toBe(true);
  expect(matchesGrammar(silent, `So.${close("think")}${call}`)).toBe(false);
});
