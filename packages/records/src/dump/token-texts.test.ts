import { FakeTokenizer } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { TokenTexts } from "./token-texts.js";

/** Each token is a byte, or a word of several. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const words = new Map([
  [1000, "hello "],
  [1001, ""],
  [1002, "é!"],
]);
const encode = (id: number) => (words.has(id) ? [...new TextEncoder().encode(words.get(id))] : [id]);
const detokenize = (ids: Int32Array) => decoder.decode(Uint8Array.from([...ids].flatMap(encode)));
const bytes = (text: string) => [...new TextEncoder().encode(text)];
const find = (ids: number[], text = detokenize(Int32Array.from(ids))) =>
  new TokenTexts(detokenize).findEnds(Int32Array.from(ids), text);

describe("ends of tokens in their text", () => {
  it("are those of their texts", () => {
    expect(find([1000, 97, 1002])).toEqual([6, 7, 9]);
    expect(find([])).toEqual([]);
    expect(find([1001, 97, 1001])).toEqual([0, 1, 1]);
  });

  it("count UTF-16 units: a character cut between tokens is the last one's", () => {
    expect(find([97, ...bytes("é€"), 1000])).toEqual([1, 1, 2, 2, 2, 3, 9]);
    expect(find(bytes("🦙x"))).toEqual([0, 0, 0, 2, 3]);
    // A token without text within a character.
    expect(find([0xe2, 1001, 0x82, 0xac, 97])).toEqual([0, 0, 0, 1, 2]);
  });

  it("end with the text, for any bytes", () => {
    let seed = Number(process.env.CRIA_SEED ?? 7);
    const draw = (below: number) => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    const pool = [...bytes("aé€🦙"), 1000, 1001, 1002, 0xff, 0x80, 0xe2, 0xf0];
    for (let k = 0; k < 500; k++) {
      const ids = Array.from({ length: draw(k % 10 === 0 ? 300 : 30) }, () => pool[draw(pool.length)]!);
      const text = detokenize(Int32Array.from(ids));
      const ends = find(ids)!;
      expect(ends, JSON.stringify(ids)).toHaveLength(ids.length);
      expect(ends.at(-1) ?? 0).toBe(text.length);
      for (const [i, end] of ends.entries()) expect(end).toBeGreaterThanOrEqual(ends[i - 1] ?? 0);
    }
    const garbage = Array<number>(200).fill(0xff);
    expect(find(garbage)!.at(-1)).toBe(200);
  });

  it("of special tokens are theirs; a wrong text has none", () => {
    const tokenizer = new FakeTokenizer();
    const ids = tokenizer.tokenize("hü<|im_end|>");
    const texts = new TokenTexts((some) => tokenizer.detokenize(some));
    expect(texts.findEnds(ids, tokenizer.detokenize(ids))).toEqual([1, 1, 2, 12]);
    expect(find([97, 98], " ab")).toBeNull();
  });
});
