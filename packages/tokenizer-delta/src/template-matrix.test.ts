import { afterAll, describe, expect, it } from "vitest";
import { chatTemplate } from "../../../models/src/policy-prompt.js";
import { comparePaths, type Outcome } from "./matrix/compare-paths.js";
import { conversations } from "./matrix/conversations.js";
import { disposeVocabularies, loadCase } from "./matrix/load-case.js";
import { expandNames, readTemplateTable } from "./matrix/template-table.js";
import { templateCases } from "./matrix/templates.js";

/**
 * Semantic 8 of the rollout: deltas and sampled turns add up to the whole rendering, in text and in tokens. Plays every
 * real template with every conversation. `docs/chat-templates.md` lists other results with their reasons, and a listed case that is
 * equal fails too.
 */
const names = Object.keys(conversations);
const listed = new Map<string, Outcome>();
for (const [template, which, outcome] of readTemplateTable("## Where the delta path differs")) {
  for (const name of expandNames(which!, names)) listed.set(`${template}/${name}`, outcome as Outcome);
}

afterAll(disposeVocabularies);

describe.each(templateCases)("$template with the vocabulary $vocabulary", (example) => {
  it("8. deltas add up to the whole rendering, but for the cases that the page lists", async () => {
    const tokenizer = await loadCase(example, example.template === "cria-tiny" ? chatTemplate : undefined);
    const outcomes: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const [name, conversation] of Object.entries(conversations)) {
      const result = comparePaths(tokenizer, conversation);
      expected[name] = listed.get(`${example.template}/${name}`) ?? "equal";
      outcomes[name] = result.outcome;
      if (outcomes[name] !== expected[name]) outcomes[name] += `: ${result.detail}`;
      // Rendering as in production gives the production context at every turn, whatever the template rewrites.
      if (result.inferenceEqual === false) outcomes[name] += ", and production rendering differs";
      if (result.outcome !== "equal") continue;
      const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(conversation.messages, conversation.tools);
      if (!result.tokenIds.slice(0, tokenIds.length).every((id, i) => id === tokenIds[i]))
        outcomes[name] += ", and supervised tokens differ";
      expect(mask.length).toBe(tokenIds.length);
    }
    expect(outcomes).toEqual(expected);
  });
});

/** Templates whose delta before a user's message differs from their own text there; see `docs/chat-templates.md`. */
const unlike = ["google-gemma-2-2b-it", "mistralai-Mistral-Nemo-Instruct-2407", "Kimi-K3"];

describe.each(templateCases.filter(({ template }) => !unlike.includes(template)))(
  "cut turns with $template and $vocabulary",
  (example) => {
    it("2. the delta ends a cut turn with the template's own end of turn and nothing else", async () => {
      const tokenizer = await loadCase(example, example.template === "cria-tiny" ? chatTemplate : undefined);
      const { messages } = conversations["system"]!;
      const question = messages.slice(3, 4);
      const ended = tokenizer.renderDelta(question, true);
      const cut = tokenizer.renderDelta(question, false);
      expect(cut.endsWith(ended)).toBe(true);
      const end = cut.slice(0, cut.length - ended.length);
      expect([...example.ends, "<|end|>"]).toContain(end);
      expect(tokenizer.encodeDelta(question, false)).toEqual(
        Int32Array.from([...tokenizer.tokenizer.tokenize(end), ...tokenizer.encodeDelta(question, true)]),
      );
      // In a real conversation the template prints exactly this after the assistant's last word, "2".
      const whole = tokenizer.render(messages.slice(0, 4), [], true);
      expect(whole.endsWith(`2${cut}`)).toBe(true);
    });
  },
);

describe("docs/chat-templates.md", () => {
  it("lists known templates only, each with its vocabulary", () => {
    const known = templateCases.map(({ template, vocabulary, own }) => [template, vocabulary, own ? "yes" : "no"]);
    expect(readTemplateTable("## Templates and vocabularies").map((row) => row.slice(0, 3))).toEqual(known);
    for (const key of listed.keys()) expect(known.map(([template]) => template)).toContain(key.split("/")[0]);
  });

  it("gives a reason for each listed case", () => {
    for (const row of readTemplateTable("## Where the delta path differs")) expect(row[3]!.length).toBeGreaterThan(20);
  });
});
