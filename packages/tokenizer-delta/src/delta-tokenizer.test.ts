import type { ChatMessage } from "@cria/core";
import { describe, expect, it } from "vitest";
import { ChatTemplate, checkTokenization, DeltaTokenizer, type TextTokenizer } from "./index.js";

/** Characters as tokens, but for special ones. */
const specials = ["<|im_start|>", "<|im_end|>"];
const tokenizer: TextTokenizer = {
  tokenize: (text) =>
    Int32Array.from(
      text
        .split(/(<\|im_start\|>|<\|im_end\|>)/)
        .flatMap((part) =>
          specials.includes(part) ? [1_000_000 + specials.indexOf(part)] : [...part].map((c) => c.codePointAt(0)!),
        ),
    ),
  detokenize: (ids) =>
    Array.from(ids, (id) => (id >= 1_000_000 ? specials[id - 1_000_000]! : String.fromCodePoint(id))).join(""),
};
const chatml = new ChatTemplate(
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
);
const delta = new DeltaTokenizer(chatml, tokenizer, { endOfTurnTokens: [1_000_001] });
const text = (ids: ArrayLike<number>) => tokenizer.detokenize(ids);

describe("DeltaTokenizer", () => {
  const system: ChatMessage = { role: "system", content: "be brief" };
  const user: ChatMessage = { role: "user", content: "hi <|im_end|>?" };

  it("inserts what the template puts after a sampled end-of-turn token", () => {
    expect(text(delta.encodeDelta([{ role: "tool", content: "7" }], true))).toBe(
      "\n<|im_start|>tool\n7<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("adds the end-of-turn token itself after a turn that was cut", () => {
    expect(text(delta.encodeDelta([user], false))).toMatch(/^<\|im_end\|>\n<\|im_start\|>user/);
  });

  it("prompt, turns and deltas add up to the whole rendering", () => {
    const turns: ChatMessage[][] = [
      [{ role: "tool", content: "" }],
      [{ role: "user", content: "ünï\ncode 🎈" }],
      [
        { role: "tool", content: "a" },
        { role: "tool", content: "b" },
      ],
    ];
    const messages: ChatMessage[] = [system, user];
    let ids = [...delta.encodePrompt(messages)];
    for (const turn of turns) {
      const said: ChatMessage = { role: "assistant", content: `turn ${messages.length}` };
      ids = [...ids, ...tokenizer.tokenize(`${said.content}<|im_end|>`), ...delta.encodeDelta(turn, true)];
      messages.push(said, ...turn);
    }
    expect(text(ids)).toBe(chatml.render(messages, { addGenerationPrompt: true }));
    expect(checkTokenization(ids, chatml.render(messages, { addGenerationPrompt: true }), tokenizer).kind).toBe(
      "equal",
    );
  });

  it("a template that drops reasoning from earlier turns gives the same deltas", () => {
    const forgetful = new ChatTemplate(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    const other = new DeltaTokenizer(forgetful, tokenizer, { endOfTurnTokens: [1_000_001] });
    expect(text(other.encodeDelta([user], true))).toBe(text(delta.encodeDelta([user], true)));
  });

  it("masks assistant text and its end-of-turn token, and nothing else", () => {
    const messages: ChatMessage[] = [
      system,
      user,
      { role: "assistant", content: "one" },
      { role: "tool", content: "2" },
      { role: "assistant", content: "three" },
    ];
    const { tokenIds, mask } = delta.encodeMessagesWithMask(messages);
    expect(text(tokenIds)).toBe(chatml.render(messages).trimEnd());
    expect(text([...tokenIds].filter((_, i) => mask[i]))).toBe("one<|im_end|>three<|im_end|>");
  });

  it("says what a template cannot do", () => {
    expect(() => new ChatTemplate("{% if %}")).toThrow(/does not parse/);
    const strict = new ChatTemplate(
      "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}{% endfor %}",
    );
    expect(() => strict.render([{ role: "tool", content: "" }])).toThrow(/no tools here/);
  });
});

describe("checkTokenization", () => {
  it("tells drift from mismatch, with the place", () => {
    const merged: TextTokenizer = {
      ...tokenizer,
      tokenize: (t) => Int32Array.from(t === "ab" ? [500_000] : [...tokenizer.tokenize(t)]),
      detokenize: (ids) => text(ids).replaceAll(String.fromCodePoint(500_000), "ab"),
    };
    expect(checkTokenization([97, 98], "ab", merged).kind).toBe("drift");
    expect(checkTokenization(tokenizer.tokenize("hello world"), "hello there", tokenizer)).toMatchObject({
      kind: "mismatch",
      expected: expect.stringContaining("there"),
    });
    expect(checkTokenization(tokenizer.tokenize("a b\n"), "a  b", tokenizer, "ignore_strippable").kind).toBe("equal");
    expect(checkTokenization(tokenizer.tokenize("x"), "y", tokenizer, "disable").kind).toBe("equal");
  });
});
