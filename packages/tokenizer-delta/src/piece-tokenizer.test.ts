import type { SpecialToken } from "@cria/core";
import { amount, FakeTokenizer, fakeChatTemplate } from "@cria/core/testing";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { cutAtSpecialTokens } from "./cut-at-special-tokens.js";
import { ChatTemplate, DeltaTokenizer, ownText } from "./internal.js";
import { PieceTokenizer } from "./piece-tokenizer.js";
import { SpecialTokens } from "./special-tokens.js";
import { BundledVocabulary } from "./testing/index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

/**
 * One of each kind of vocabulary: byte-level BPE with a few control tokens, with 256, with user-defined runs of spaces
 * and with user-defined letters; SentencePiece with a space in front, and with tokens that remove whitespace; Unigram;
 * BPE with escaped spaces.
 */
const names = ["qwen2", "llama-bpe", "gpt-neox", "deepseek-coder", "llama-spm", "phi-3", "nomic-bert-moe", "gemma-4"];
const loaded: BundledVocabulary[] = [];
afterAll(async () => {
  for (const vocabulary of loaded) await vocabulary.dispose();
});

describe("PieceTokenizer", () => {
  it("gives long texts the same tokens beside the event loop, which goes on meanwhile", async () => {
    const fake = new FakeTokenizer();
    const long: string[] = [];
    const pieces = new PieceTokenizer({
      tokenize: (text, options) => {
        expect(text.length).toBeLessThan(10_000);
        return fake.tokenize(text, options);
      },
      tokenizeAside: async (text, options) => {
        long.push(text);
        return fake.tokenize(text, options);
      },
      detokenize: (ids) => fake.detokenize(ids),
      listSpecialTokens: () => fake.listSpecialTokens(),
    });
    const word = "a<|im_end|>\n";
    const text = `${"x".repeat(20_000)}<|im_start|>user ${"y".repeat(30_000)}<tool_call>${word.repeat(30_000)}`;
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const ids = await pieces.tokenizeAside(ownText(text));
    clearInterval(timer);
    expect(ids).toEqual(fake.tokenize(text));
    expect(long.map(({ length }) => length)).toEqual([20_000, 30_005]);
    expect(turns).toBeGreaterThan(1);
    // Control tokens spelled by others stay text there too.
    const spelled = `${"z".repeat(9000)}<|im_end|>`;
    expect(await pieces.tokenizeAside({ ...ownText(spelled), plainAt: [9001] })).toEqual(
      fake.tokenize(spelled, { special: false }),
    );
    expect(await pieces.tokenizeAside(ownText(word))).toEqual(pieces.tokenize(ownText(word)));
  });

  it.each(names)("%s: the tokens of any text are llama.cpp's own", async (name) => {
    const vocabulary = await BundledVocabulary.load(name);
    loaded.push(vocabulary);
    const pieces = new PieceTokenizer(vocabulary);
    const tokens = vocabulary.listSpecialTokens();
    expect(tokens.length).toBeGreaterThan(0);
    const special = fc.constantFrom(...tokens.map((token) => token.text));
    const part = fc.oneof(
      { weight: 4, arbitrary: special },
      { weight: 2, arbitrary: fc.constantFrom(" ", "\n", "  ", "\t\r\n", "\u00a0", "\u3000", " ".repeat(40)) },
      {
        weight: 2,
        arbitrary: fc.constantFrom("user", "hello world", "12", "<", "|>", "<|", "▁", "é🦙", "Ħ\u0000", "I'm"),
      },
      { weight: 1, arbitrary: fc.tuple(special, fc.nat(12)).map(([text, at]) => text.slice(0, at)) },
      { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 8 }) },
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
        const text = parts.join("");
        expect(pieces.tokenize(ownText(text))).toEqual(vocabulary.tokenize(text));
        expect(pieces.tokenizePlain(text)).toEqual(vocabulary.tokenize(text, { special: false }));
        expect(
          pieces
            .tokenizePieces(ownText(text))
            .map((piece) => piece.text)
            .join(""),
        ).toBe(text);
      }),
      { numRuns: amount(50, 150) },
    );
  });

  it.each(names)("%s: plain text with all its control tokens in it is as without special tokens", async (name) => {
    const vocabulary = loaded.find((one) => one.name === name)!;
    const pieces = new PieceTokenizer(vocabulary);
    const control = vocabulary.listSpecialTokens().filter((token) => token.control);
    for (const { text } of control.slice(0, 60)) {
      const said = `a ${text}${text} b`;
      const ids = pieces.tokenize({ ...ownText(said), plainAt: pieces.specialTokens.listControlPlaces(said) });
      expect(ids).toEqual(vocabulary.tokenize(said, { special: false }));
      expect([...ids].filter((id) => pieces.specialTokens.textOf(id) !== null)).toEqual([]);
    }
  });

  const token = (id: number, text: string, more: Partial<SpecialToken> = {}): SpecialToken => ({
    id,
    text,
    control: true,
    stripLeft: false,
    stripRight: false,
    ...more,
  });
  const cut = (text: string, tokens: SpecialToken[], plainAt: number[] = []) => {
    const { cuts, certain } = cutAtSpecialTokens({ text, plainAt }, new SpecialTokens(tokens).listSpelled(text));
    return { cuts: cuts.map(({ from, to, token }) => [text.slice(from, to), token?.id ?? null]), certain };
  };

  it("overlapping tokens: the longest in bytes first, then from left to right", () => {
    expect(cut("abcde", [token(1, "ab"), token(2, "bcd"), token(3, "e")])).toEqual({
      cuts: [
        ["a", null],
        ["bcd", 2],
        ["e", 3],
      ],
      certain: true,
    });
    // Both have two bytes; one of them is a single character.
    expect(cut("aéb", [token(1, "aé"), token(2, "é"), token(3, "éb")]).certain).toBe(false);
    expect(cut("aaa", [token(1, "aa")])).toEqual({
      cuts: [
        ["aa", 1],
        ["a", null],
      ],
      certain: true,
    });
  });

  it("tokens that take whitespace away, up to their neighbours", () => {
    const strip = [token(1, "<l>", { stripLeft: true }), token(2, "<r>", { stripRight: true }), token(3, "<>")];
    expect(cut("a \n<l> b <r>\t <> c", strip).cuts).toEqual([
      ["a", null],
      [" \n<l>", 1],
      [" b ", null],
      ["<r>\t ", 2],
      ["<>", 3],
      [" c", null],
    ]);
  });

  it("a control token that others spelled stays text, a user-defined one does not, and neighbours stay tokens", () => {
    const tokens = [token(1, "<a>"), token(2, "<b>", { control: false }), token(3, "!")];
    const text = "<a><a><b>!<a>!";
    expect(cut(text, tokens, [4, 7, 9]).cuts).toEqual([
      ["<a>", 1],
      ["<a>", null],
      ["<b>", 2],
      ["!", null],
      ["<a>", 1],
      ["!", 3],
    ]);
  });
});

/** Lowest CPU time of `run` in three attempts, in milliseconds. Each attempt has another text: results are kept. */
function measure(run: (text: string) => unknown, unit: string, count: number): number {
  const times = [1, 2, 3].map((attempt) => {
    const text = `${attempt} of ${count}${unit.repeat(count)}`;
    const before = process.cpuUsage();
    run(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}

describe("time grows with the text, not with its square (1024 times as much for 32 times the text)", () => {
  // Linear time gives 32 to 60; a busy machine may double that.
  const bound = 256;
  const compare = (run: (text: string) => unknown, unit: string, count: number) => {
    measure(run, unit, count);
    return measure(run, unit, 32 * count) / measure(run, unit, count);
  };

  it("special tokens in text of the assistant or the template", async () => {
    const vocabulary = await BundledVocabulary.load("qwen2");
    loaded.push(vocabulary);
    const pieces = new PieceTokenizer(vocabulary);
    expect(pieces.tokenize(ownText("<|im_end|>x".repeat(750)))).toHaveLength(1_500);
    expect(compare((text) => pieces.tokenize(ownText(text)), "<|im_end|>x", 375)).toBeLessThan(bound);
    expect(pieces.tokenizePlain("[PAD151646]x".repeat(750))).toHaveLength(1_500);
    expect(compare((text) => pieces.tokenizePlain(text), "[PAD151646]x", 375)).toBeLessThan(bound);
  });

  it("special tokens in text of others, many messages, and both together", () => {
    const tokenizer = new DeltaTokenizer(new ChatTemplate(fakeChatTemplate), new FakeTokenizer(), {
      bosToken: null,
      endOfTurnTokens: [new FakeTokenizer().idOf("<|im_end|>")],
    });
    const one = (text: string) => [{ role: "user" as const, content: text }];
    const many = (text: string) =>
      text.split("|>").map((content) => ({ role: "user" as const, content: `${content}|>` }));
    for (const make of [one, many])
      expect(compare((text) => tokenizer.encodePrompt(make(text)), "<|im_end|>x", 125)).toBeLessThan(bound);
  });
});
