import { EngineError, type GenerateOptions } from "@cria/core";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "./index.js";
import { TinyModels } from "./testing/index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const models = new TinyModels();
let model: LlamaModel;
beforeAll(async () => {
  model = await models.load({ embeddingScale: 0.3 }, { lora: { rank: 4 }, contextSize: 512, maxSequences: 4 });
});
afterAll(() => models.cleanUp());

const prompt = [...Buffer.from("Say it: ")];

async function generate(options: Partial<GenerateOptions>, from = model) {
  const sequence = from.createSequence();
  try {
    return await sequence.generate(prompt, { maxTokens: 60, seed: 1, ...options });
  } finally {
    sequence.dispose();
  }
}

/** Log-softmax of the whole row of logits after `tokens`, from the scores of all tokens that could follow. */
async function scoreAll(tokens: readonly number[], temperature: number): Promise<Float64Array> {
  const count = model.info.vocabSize;
  const sequences = Array.from({ length: count }, (_, next) => ({ tokenIds: [...tokens, next], from: tokens.length }));
  const scores = await model.score(sequences, { temperature });
  return Float64Array.from(scores, ({ logprobs }) => logprobs[tokens.length]!);
}

describe("sampled text", () => {
  const cases: [string, string, RegExp][] = [
    ["alternatives", 'root ::= "yes" | "no" | "maybe"', /^(yes|no|maybe)$/],
    [
      "rules and repetitions",
      'root ::= word (" " word){1,3} "."\nword ::= [a-z]{2,4}',
      /^[a-z]{2,4}( [a-z]{2,4}){1,3}\.$/,
    ],
    ["an optional part", 'root ::= "-"? [0-9]+ ("." [0-9]*)? "!"', /^-?[0-9]+(\.[0-9]*)?!$/],
    ["a negated class", 'root ::= "\\"" [^"\\\\\\x00-\\x1f\\x7f-\\x9f]{3,9} "\\""', /^"[^"\\\p{Cc}]{3,9}"$/u],
    ["characters of several bytes", "root ::= [à-ü]{2} [一-龥]{2} [😀-😏]", /^[à-ü]{2}[一-龥]{2}[😀-😏]$/u],
    ["any character", "root ::= ... .", /^.{4}$/su],
    ["a comment and lines", 'root ::= ( # one\n "a" |\n "b" )\n\n# end\n', /^[ab]$/],
    ["recursion", 'root ::= "(" root? ")"', /^(\(+)(\)+)$/],
    ["repetitions of repetitions", 'root ::= ("a"+ ){2}*  "b"', /^(aa+)*b$/],
    ["an empty text", 'root ::= ""', /^$/],
  ];
  it.each(cases)("%s", async (_, grammar, expected) => {
    for (let seed = 0; seed < 8; seed++) {
      // A random model seldom stops at a possible end, yet most texts are complete.
      const { text, finishReason, tokenIds, logprobs, constrained } = await generate({ grammar, seed, maxTokens: 200 });
      if (finishReason === "stop") expect(text).toMatch(expected);
      expect(constrained).toBeInstanceOf(Uint8Array);
      expect([logprobs.length, constrained!.length]).toEqual([tokenIds.length, tokenIds.length]);
    }
    const finished = await generate({ grammar, seed: 1, maxTokens: 400 });
    expect(finished.finishReason).toBe("stop");
  });

  it("ends if nothing can follow, by an end token with logprobs over the end tokens", async () => {
    const { text, tokenIds, finishReason, constrained, logprobs } = await generate({ grammar: 'root ::= "ok"' });
    expect([text, finishReason]).toEqual(["ok", "stop"]);
    expect([...tokenIds].slice(0, 2)).toEqual([...Buffer.from("ok")]);
    expect(model.info.endOfGenerationTokens).toContain(tokenIds[2]);
    expect([...logprobs.slice(0, 2)]).toEqual([0, 0]);
    expect([...constrained!]).toEqual([1, 1, 1]);
  });

  it("never ends earlier, and ends by an end token that is no stop token of the request too", async () => {
    const grammar = "root ::= [a-z]{30}";
    const free = await generate({ grammar, stopTokens: [] });
    expect(free.text).toMatch(/^[a-z]{30}$/);
    expect(free.finishReason).toBe("stop");
    expect(free.tokenIds).toHaveLength(31);
  });

  it("takes a control token that stops the request as an end, not as text", async () => {
    const start = 257; // <|im_start|>, a control token that by itself ends nothing
    const text = await generate({ grammar: "root ::= .{5}", stopTokens: [start] });
    expect([...text.tokenIds.slice(0, -1)]).not.toContain(start);
    expect([...text.text]).toHaveLength(5);
  });

  it("knows tokens by their text and by their id", async () => {
    const byText = await generate({ grammar: 'root ::= <|im_start|> "a" <[98]>' });
    expect([...byText.tokenIds.slice(0, 3)]).toEqual([257, 97, 98]);
    const bySpelling = await generate({ grammar: 'root ::= "<|im_start|>"', temperature: 5 });
    expect(bySpelling.text).toBe("<|im_start|>");
    for (let seed = 0; seed < 20; seed++) {
      const { tokenIds } = await generate({ grammar: 'root ::= ("a" | "b") !<[97]> "c"', seed, temperature: 5 });
      expect(tokenIds[1]).not.toBe(97);
    }
  });

  it("stops at stop strings, at the limit and when aborted as ever", async () => {
    const grammar = "root ::= [ab]+";
    const stopped = await generate({ grammar, stopStrings: ["ab"], maxTokens: 200 });
    expect(stopped.finishReason).toBe("stop");
    expect((await generate({ grammar, maxTokens: 1 })).constrained).toHaveLength(1);
    const cut = await generate({ grammar: "root ::= [ab]{50}", maxTokens: 7 });
    expect([cut.finishReason, cut.text.length, cut.constrained!.length]).toEqual(["length", 7, 7]);
    const aborted = await generate({ grammar, signal: AbortSignal.abort() });
    expect(aborted.constrained).toHaveLength(aborted.tokenIds.length);
  });
});

describe("logprobs", () => {
  const letters = [..."abcdefghijklmnopqrstuvwxyz"].map((c) => c.charCodeAt(0));
  const sampling: [string, Partial<GenerateOptions>][] = [
    ["temperature 0.7", { temperature: 0.7 }],
    ["temperature 2", { temperature: 2 }],
    ["greedy", { temperature: 0 }],
    ["top-k 3", { topK: 3 }],
    ["top-p 0.5", { topP: 0.5 }],
    ["min-p 0.5", { minP: 0.5 }],
  ];
  it.each(sampling)("%s: over the allowed tokens, which the other cuts come after", async (_, options) => {
    const result = await generate({ ...options, grammar: "root ::= [a-z]{12}", seed: 5 });
    const temperature = options.temperature || 1;
    const tokens = [...prompt];
    for (const [t, token] of [...result.tokenIds.slice(0, 12)].entries()) {
      const all = await scoreAll(tokens, temperature);
      const mass = letters.reduce((sum, letter) => sum + Math.exp(all[letter]!), 0);
      expect(result.logprobs[t]!).toBeCloseTo(all[token]! - Math.log(mass), 4);
      expect(result.constrained![t]).toBe(1);
      const ranked = [...letters].sort((a, b) => all[b]! - all[a]!);
      const rank = ranked.indexOf(token);
      expect(rank).toBeGreaterThanOrEqual(0);
      if (options.temperature === 0) expect(rank).toBe(0);
      if (options.topK) expect(rank).toBeLessThan(3);
      if (options.minP) expect(all[token]! - all[ranked[0]!]!).toBeGreaterThan(Math.log(0.5) - 1e-4);
      const before = ranked.slice(0, Math.max(0, rank)).reduce((sum, letter) => sum + Math.exp(all[letter]!), 0);
      if (options.topP) expect(before / mass).toBeLessThan(0.5 + 1e-4);
      tokens.push(token);
    }
  });

  it("reports 0 if the grammar removed nothing, and then samples as without it", async () => {
    // All tokens with noticeable probability are allowed; the end token and bytes that begin no character are not.
    const sharp = await models.load({ embeddingScale: 30, tied: true }, { contextSize: 256 });
    const free = await generate({ seed: 3, maxTokens: 20, stopTokens: [] }, sharp);
    const grammar = `root ::= ${[...new Set(free.tokenIds)].map((id) => `<[${id}]>`).join(" | ")}`.replace(
      "root ::= ",
      "root ::= (",
    );
    const held = await generate({ grammar: `${grammar})+`, seed: 3, maxTokens: 20, stopTokens: [] }, sharp);
    const zeros = [...held.constrained!].filter((flag) => flag === 0).length;
    expect(zeros).toBeGreaterThan(0);
    for (const [t, flag] of [...held.constrained!].entries()) {
      if (flag !== 0) break;
      expect(held.tokenIds[t]).toBe(free.tokenIds[t]);
      expect(held.logprobs[t]!).toBeCloseTo(free.logprobs[t]!, 5);
    }
  });
});

describe("bits", () => {
  const grammar = 'root ::= item+\nitem ::= "[" [a-f]{1,5} (item | "-"){0,2} "]"';

  it("a constrained row depends on its own tokens, seed and grammar alone; a free one does not see it", async () => {
    const alone = await generate({ grammar, seed: 11 });
    const free = await generate({ seed: 12, stopTokens: [] });
    const other = 'root ::= [0-9]{1,40} "."';
    for (let round = 0; round < 2; round++) {
      const [a, b, c, d] = await Promise.all([
        generate({ grammar, seed: 11 }),
        generate({ seed: 12, stopTokens: [] }),
        generate({ grammar: other, seed: 13 }),
        generate({ grammar, seed: 14 }),
      ]);
      expect([a!.tokenIds, a!.logprobs, a!.constrained]).toEqual([alone.tokenIds, alone.logprobs, alone.constrained]);
      expect([b!.tokenIds, b!.logprobs]).toEqual([free.tokenIds, free.logprobs]);
      expect(b).not.toHaveProperty("constrained");
      expect(c!.text).toMatch(/^[0-9]{1,40}\.?$/);
      expect(d!.text).toMatch(/^\[/);
    }
  });
});

describe("wrong grammars", () => {
  const nested = (depth: number) => `root ::= ${"(".repeat(depth)}"a"${")".repeat(depth)}`;
  const wrong: [title: string, grammar: string, expected: RegExp, received?: RegExp][] = [
    ["nothing", "", /root ::=/, / at line 1, column 1$/],
    ["no root", 'a ::= "b"', /root ::=/],
    ["an unknown rule", "root ::= a\n", /"a ::=/, / at line 1, column 10$/],
    ["an open literal", 'root ::= "a', /closing/, / at line 1, column 12$/],
    ["an open class", "root ::= [a", /closing/],
    ["an empty class", "root ::= []", /a character/],
    ["a backward range", "root ::= [z-a]", /a range/],
    ["an unknown escape", 'root ::= "\\q"', /escapes/],
    ["a short escape", 'root ::= "\\u12"', /^4 hexadecimal/],
    ["no such character", 'root ::= "\\U00110000"', /U0010FFFF/],
    ["no assignment", 'root = "a"', /::=/, /^"=" at line 1, column 6$/],
    ["an open group", 'root ::= ("a"', /"\)"/],
    ["a stray character", 'root ::= "a" é', /an element/, /^"é" at line 1, column 14$/],
    ["a repetition of nothing", "root ::= *", /an element/],
    ["a backward repetition", 'root ::= "a"{3,2}', /\{least,most\}/, /^\{3,2\} /],
    ["too many repetitions", 'root ::= "a"{100001}', /at most 100000/],
    ["far too many repetitions", 'root ::= "a"{99999999999999999999}', /at most 100000/],
    ["repetitions that multiply", "root ::= [^a]{100000} [^b]{100000}", /\d+ steps/],
    ["left recursion", 'root ::= root "a" | "b"', /./, /^left recursion of "root"/],
    ["hidden left recursion", 'root ::= x* a "c"\nx ::= "x"?\na ::= b\nb ::= x a | "b"', /./, /^left recursion/],
    ["left recursion in a group", 'root ::= ("a"? (root)+)?', /./, /^left recursion/],
    ["deep groups", nested(100_000), /at most 200/],
    ["an unknown token", "root ::= <no such token>", /one token/],
    ["a token beyond the vocabulary", "root ::= <[99999]>", /below \d+/],
    ["megabytes", `root ::= "${"a".repeat(2 ** 20)}"`, /262144 bytes/],
    ["no text", "\0", /a rule/],
  ];
  it.each(wrong)("%s", async (_, grammar, expected, received = /./) => {
    const sequence = model.createSequence();
    const failure = await sequence.generate(prompt, { grammar, maxTokens: 4 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EngineError);
    expect(failure).toMatchObject({
      code: "engine/bad-grammar",
      expected: expect.stringMatching(expected),
      received: expect.stringMatching(received),
    });
    // Nothing was sampled, and the sequence still works.
    expect(sequence.tokenCount).toBe(0);
    expect((await sequence.generate(prompt, { grammar: 'root ::= "a"', maxTokens: 4 })).text).toBe("a");
    sequence.dispose();
  });

  it("refuses a grammar that is not text", async () => {
    await expect(generate({ grammar: 5 as never })).rejects.toMatchObject({
      code: "engine/bad-option",
      subject: "generate.grammar",
    });
  });

  it("an alternative that no token can write fails only that request", async () => {
    const beside = generate({ seed: 12, stopTokens: [] });
    await expect(generate({ grammar: 'root ::= "a" [\\x00]' })).rejects.toMatchObject({
      code: "engine/grammar-dead-end",
      received: "none after 1 tokens",
    });
    expect((await beside).tokenIds.length).toBe(60);
  });

  const hard: [string, string][] = [
    ["ways that double with each character", 'root ::= s\ns ::= "x" s "a" | "x" s "b" | "x" s "c"'],
    ["ways that multiply in repetitions", `root ::= ${'("a" | "a"){1,300}'.repeat(3)} (("a"*)*)* "b"`],
    [
      "a rule of many alternatives within itself",
      `root ::= ${Array.from({ length: 5000 }, () => '"a" root "b"').join(" | ")}`,
    ],
    ["a chain of empty rules", `root ::= ${"e ".repeat(20_000)}"a"\ne ::= ""`],
    [
      "a deep chain of rules",
      `root ::= r0\n${Array.from({ length: 30_000 }, (_, i) => `r${i} ::= r${i + 1}`).join("\n")}\nr30000 ::= "a"`,
    ],
    ["right recursion through an empty rule", 'root ::= e root | "a"\ne ::= "b"?\n'.replace("e root", '"b" e root')],
  ];
  it.each(hard)(
    "%s: an answer or an error, soon",
    async (_, grammar) => {
      const started = performance.now();
      const result = await generate({ grammar, maxTokens: 100 }).catch((error: unknown) => error);
      if (result instanceof Error)
        expect((result as EngineError).code).toMatch(/^engine\/(grammar-too-complex|bad-grammar)$/);
      expect(performance.now() - started).toBeLessThan(30_000);
      expect((await generate({ grammar: 'root ::= "a"' })).text).toBe("a");
    },
    60_000,
  );

  it("any text is a grammar or an error", async () => {
    const parts = [
      "root",
      " ::= ",
      "a",
      '"b"',
      "[^c-d]",
      "(",
      ")",
      "|",
      "*",
      "+",
      "?",
      "{2,3}",
      "{1,}",
      "\n",
      ".",
      "\\",
      "<",
      "!",
      "é",
      "\0",
      "-",
    ];
    const pieces = fc.oneof(fc.constantFrom(...parts), fc.string({ unit: "binary", maxLength: 3 }));
    let sampled = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 12 }), fc.boolean(), async (list, isRule) => {
        const grammar = `${isRule ? "a ::= [x-z]\nroot ::= " : ""}${list.join("")}`;
        const result = await generate({ grammar, maxTokens: 8 }).catch((error: unknown) => error);
        if (result instanceof Error) expect((result as EngineError).code).toMatch(/^engine\/(bad-grammar|grammar-)/);
        else sampled++;
      }),
      { numRuns: 400 },
    );
    expect(sampled).toBeGreaterThan(10);
  });

  it("names ambiguity that grows without end", async () => {
    await expect(generate({ grammar: hard[0]![1], maxTokens: 100 })).rejects.toMatchObject({
      code: "engine/grammar-too-complex",
    });
  });
});
