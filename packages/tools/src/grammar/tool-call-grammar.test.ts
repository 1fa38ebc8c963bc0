import { expect, it } from "vitest";
import { toolCallGrammar } from "./tool-call-grammar.js";

/** Matches the rule `text-0` of a grammar: each of its alternatives reads a character and continues, or ends. */
function matches(grammar: string, text: string): boolean {
  const rules = new Map(
    [...grammar.matchAll(/^(text-\d+) ::= (.*)$/gm)].map(([, name, body]) => [name!, body!.split(" | ")]),
  );
  let states = new Set(["text-0"]);
  for (const char of text) {
    const next = [...states].flatMap((state) =>
      rules.get(state)!.flatMap((alternative) => {
        const [read, target] = alternative.split(" ");
        if (target === undefined) return [];
        const pattern = read!.startsWith("[") ? new RegExp(`^${read}$`, "su") : null;
        return (pattern ? pattern.test(char) : read === `"${char}"`) ? [target] : [];
      }),
    );
    states = new Set(next);
  }
  return [...states].some((state) => rules.get(state)!.includes('""'));
}

it("qwen3_coder: a bare text is anything without the tag that ends it", () => {
  const parameters = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  const grammar = toolCallGrammar("qwen3_coder", [{ type: "function", function: { name: "f", parameters } }])!;
  for (const text of [
    "",
    "a",
    "</parameter",
    "</div>",
    "<</paramete r>",
    "if (a < b) {\n}\n",
    "</parameters>",
    "é</p</parameter",
  ]) {
    expect(matches(grammar, text), text).toBe(true);
  }
  for (const text of [
    "</parameter>",
    "a</parameter>b",
    "<</parameter>",
    "</para</parameter>",
    "</parameter</parameter>",
    "\r",
  ]) {
    expect(matches(grammar, text), text).toBe(false);
  }
});
