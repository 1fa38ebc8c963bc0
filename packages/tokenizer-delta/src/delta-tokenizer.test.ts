import type { ChatMessage } from "@cria/core";
import { FakeTokenizer, fakeChatTemplate } from "@cria/core/testing";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ChatTemplate, checkConversation, checkTokenization, DeltaTokenizer, type TextTokenizer } from "./internal.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

/** Characters as tokens, plus special ones. */
const specials = ["<|im_start|>", "<|im_end|>"];
const codePoints = (text: string) => [...text].map((c) => c.codePointAt(0)!);
const tokenizer: TextTokenizer = {
  tokenize: (text, { special = true } = {}) =>
    Int32Array.from(
      text
        .split(/(<\|im_start\|>|<\|im_end\|>)/)
        .flatMap((part) =>
          special && specials.includes(part) ? [1_000_000 + specials.indexOf(part)] : codePoints(part),
        ),
    ),
  detokenize: (ids) =>
    Array.from(ids, (id) => (id >= 1_000_000 ? specials[id - 1_000_000]! : String.fromCodePoint(id))).join(""),
  listSpecialTokens: () =>
    specials.map((text, i) => ({ id: 1_000_000 + i, text, control: true, stripLeft: false, stripRight: false })),
};
const chatml = new ChatTemplate(
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
);
const delta = new DeltaTokenizer(chatml, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
const text = (ids: ArrayLike<number>) => tokenizer.detokenize(ids);

describe("DeltaTokenizer", () => {
  const system: ChatMessage = { role: "system", content: "be brief" };
  const user: ChatMessage = { role: "user", content: "hi <|im_end|>?" };

  it("2. inserts the template's text after a sampled end-of-turn token", () => {
    expect(text(delta.encodeDelta([{ role: "tool", content: "7" }], true))).toBe(
      "\n<|im_start|>tool\n7<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("2. adds the end-of-turn token itself after a turn that was cut", () => {
    expect(text(delta.encodeDelta([user], false))).toMatch(/^<\|im_end\|>\n<\|im_start\|>user/);
  });

  it("2. renders equal messages anew if the template says the time", () => {
    const dated = new ChatTemplate(chatml.source.replace("{{ m.role }}", "{{ m.role }} {{ strftime_now('%Y') }}"));
    const tokens = new DeltaTokenizer(dated, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    const readAt = (year: number) => {
      vi.useFakeTimers({ now: new Date(year, 5) });
      const found = text(tokens.encodeDelta([{ role: "tool", content: "7" }], true));
      vi.useRealTimers();
      return found;
    };
    expect([readAt(2030), readAt(2031)].map((found) => /tool (\d+)/.exec(found)?.[1])).toEqual(["2030", "2031"]);
  });

  it("8. prompt, turns and deltas add up to the whole rendering", () => {
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
    expect(checkConversation(delta, { messages, tokenIds: ids }).kind).toBe("equal");
  });

  it("8. a template that drops reasoning from earlier turns gives the same deltas", () => {
    const forgetful = new ChatTemplate(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    const other = new DeltaTokenizer(forgetful, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    expect(text(other.encodeDelta([user], true))).toBe(text(delta.encodeDelta([user], true)));
  });

  it("8. they add up for any texts, with any special tokens in them", () => {
    const part = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("<|im_end|>", "<|im_start|>", "\n", " "));
    const content = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(""));
    const turn = fc.record({
      said: content,
      ended: fc.boolean(),
      role: fc.constantFrom("tool", "user"),
      heard: content,
    });
    const bytes = new FakeTokenizer();
    const endOfTurn = bytes.idOf("<|im_end|>");
    const tokenizer = new DeltaTokenizer(new ChatTemplate(fakeChatTemplate), bytes, {
      bosToken: null,
      endOfTurnTokens: [endOfTurn],
    });
    fc.assert(
      fc.property(content, fc.array(turn, { maxLength: 5 }), (question, turns) => {
        const messages: ChatMessage[] = [{ role: "user", content: question }];
        const ids = [...tokenizer.encodePrompt(messages)];
        for (const { said, ended, role, heard } of turns) {
          const observed: ChatMessage = { role: role as "tool" | "user", content: heard };
          ids.push(...bytes.tokenize(said), ...(ended ? [endOfTurn] : []), ...tokenizer.encodeDelta([observed], ended));
          messages.push({ role: "assistant", content: said }, observed);
        }
        expect(ids).toEqual([...tokenizer.encodePrompt(messages)]);
      }),
      { numRuns: 200 },
    );
  });

  it("refuses an empty delta, and templates that cannot be read in deltas", () => {
    expect(() => delta.encodeDelta([], true)).toThrow(expect.objectContaining({ code: "tokenizer/empty-delta" }));
    const notIncremental = (received: unknown) =>
      expect.objectContaining({ code: "tokenizer/not-incremental", subject: "chat template", received });
    const mute = new ChatTemplate("{% for m in messages %}{{ m.role }}{% endfor %}");
    const other = new DeltaTokenizer(mute, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    expect(() => other.encodeDelta([user], true)).toThrow(notIncremental(expect.not.stringContaining("(ASSISTANT)")));
    const again = new ChatTemplate(
      "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages | map(attribute='content') | join(' ') }}",
    );
    const repeating = new DeltaTokenizer(again, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    expect(() => repeating.encodeDelta([user], true)).toThrow(notIncremental(expect.stringContaining("(ASSISTANT)")));
  });

  it("a tool's answer follows the call that it answers, by name and id", () => {
    const naming = new ChatTemplate(
      "{% set ns = namespace(name='') %}{% for m in messages %}{% if m.role == 'tool' %}[{{ ns.name }} {{ m.tool_call_id }}: {{ m.content }}]{% else %}<|im_start|>{{ m.content }}{% for c in m.tool_calls or [] %}{% set ns.name = c.function.name %}({{ c.function.arguments | tojson }} {{ c.id }}){% endfor %}<|im_end|>{% endif %}{% endfor %}",
    );
    const other = new DeltaTokenizer(naming, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    const answer = (id: string): ChatMessage => ({ role: "tool", name: "add", tool_call_id: id, content: "3" });
    expect(other.renderDelta([answer("a")], true)).toBe("[add a: 3]");
    // The id is between the arguments and the end of the turn: another id must not shift the cut.
    expect(other.renderDelta([answer("longer")], true)).toBe("[add longer: 3]");
    expect(other.renderDelta([answer("b")], false)).toBe("<|im_end|>[add b: 3]");
  });

  it("answers without an id get that of the call at their place, in deltas and in the whole", () => {
    const naming = new ChatTemplate(
      "{% for m in messages %}{% if m.role == 'tool' %}[{{ m.tool_call_id }}: {{ m.content }}]{% else %}<|im_start|>{{ m.content }}{% for c in m.tool_calls or [] %}({{ c.function.arguments | tojson }}{{ c.id }}){% endfor %}<|im_end|>{% endif %}{% endfor %}",
    );
    const other = new DeltaTokenizer(naming, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    const answers: ChatMessage[] = [
      { role: "tool", name: "add", content: "3" },
      { role: "tool", name: "add", content: "4" },
    ];
    const call = { function: { name: "add", arguments: {} } };
    const asked: ChatMessage[] = [user, { role: "assistant", content: "", tool_calls: [call, call] }];
    expect(other.renderDelta(answers, true)).toBe("[call00001: 3][call00002: 4]");
    expect(other.render([...asked, ...answers])).toContain(
      "({}call00001)({}call00002)<|im_end|>[call00001: 3][call00002: 4]",
    );
    const named = {
      ...asked[1]!,
      tool_calls: [
        { ...call, id: "x" },
        { ...call, id: "y" },
      ],
    };
    expect(other.render([user, named, ...answers])).toContain("[x: 3][y: 4]");
  });

  it("a generation prompt that opens the reasoning is known, and left out where a message has none", () => {
    const opening = new ChatTemplate(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    );
    const other = new DeltaTokenizer(opening, tokenizer, { bosToken: null, endOfTurnTokens: [1_000_001] });
    expect(delta.renderOpening()).toBe("");
    expect(other.renderOpening()).toBe("<think>\n");
    const plain: ChatMessage[] = [user, { role: "assistant", content: "one" }];
    const thinking: ChatMessage[] = [user, { role: "assistant", content: "<think>\nhm\n</think>\none" }];
    const masked = (messages: ChatMessage[]) => {
      const { tokenIds, mask } = other.encodeMessagesWithMask(messages);
      expect(text(tokenIds)).toBe(opening.render(messages).trimEnd());
      return text([...tokenIds].filter((_, i) => mask[i]));
    };
    expect(masked(plain)).toBe("one<|im_end|>");
    expect(masked(thinking)).toBe("hm\n</think>\none<|im_end|>");
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

  it("names the fault of a template", () => {
    expect(() => new ChatTemplate("{% if %}")).toThrow(expect.objectContaining({ code: "tokenizer/bad-template" }));
    const strict = new ChatTemplate(
      "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}{% endfor %}",
    );
    expect(() => strict.render([{ role: "tool", content: "" }])).toThrow(
      expect.objectContaining({
        code: "tokenizer/render-failed",
        received: expect.stringContaining("no tools here"),
      }),
    );
  });
});

describe("checkTokenization", () => {
  it("distinguishes drift from mismatch, with the place", () => {
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
