import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { calculate, formatNumber } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerGuess as answerOfExample } from "../../examples/code-game/code-game.js";
import { answerGuess } from "./code-demonstrations.js";
import {
  calculatorSchema,
  chatTemplate,
  drawCode,
  drawProblem,
  embeddedPolicyPath,
  encode,
  families,
  firstStage,
  isHeldOut,
  isHeldOutCode,
  makeCalculatorRows,
  makeCodeGameRows,
  makeCorpus,
  makePrompt,
  Random,
  secondCodeNoise,
  secondStage,
  writeCodeDemonstration,
} from "./index.js";

const examples = join(import.meta.dirname, "..", "..", "examples");

describe("word problems", () => {
  it("have right answers, in every family and on both sides", () => {
    const random = new Random(5);
    for (let i = 0; i < 1200; i++) {
      const side = i % 2 ? "train" : "heldOut";
      const problem = drawProblem(random, side, i % families.length);
      expect(formatNumber(calculate(problem.expression)!)).toBe(problem.answer);
      expect(isHeldOut(problem.family, problem.numbers)).toBe(side === "heldOut");
      for (const number of Object.values(problem.numbers)) expect(problem.question).toContain(String(number));
      expect(problem.question).not.toMatch(/\b[a-d]\b(?! bag| box)|\b[NMOX]\b/);
    }
  });

  it("no held-out problem is among the training rows", () => {
    const rows = makeCalculatorRows();
    const key = (row: object) => {
      const { extra_info } = row as { extra_info: { family: string; expression: string } };
      return `${extra_info.family} ${extra_info.expression}`;
    };
    const train = new Set(rows.train.map(key));
    expect(rows.val.filter((row) => train.has(key(row)))).toEqual([]);
    expect(rows.val).toHaveLength(256);
  });
});

describe("the shipped rows", () => {
  for (const [example, sets] of Object.entries({ calculator: makeCalculatorRows(), "code-game": makeCodeGameRows() })) {
    it(`of ${example} come out byte for byte`, () => {
      for (const [name, made] of Object.entries(sets)) {
        const text = made.map((row) => `${JSON.stringify(row)}\n`).join("");
        expect(readFileSync(join(examples, example, "data", `${name}.jsonl`), "utf8") === text, name).toBe(true);
      }
    });
  }
});

describe("demonstrations", () => {
  for (const [name, stage] of Object.entries({ firstStage, secondStage })) {
    it(`${name}: are spoiled in the proportions of the profile`, () => {
      const corpus = makeCorpus(6000, 3, stage).filter((dialog) => dialog.tools.length > 0);
      const skips = corpus.filter(({ messages }) => messages.length === 3).length / corpus.length;
      const errors =
        corpus.filter(({ messages }) => String(messages[3]?.content).startsWith("error")).length / corpus.length;
      expect(Math.abs(skips - stage.problems.skip)).toBeLessThan(0.03);
      expect(Math.abs(errors - stage.problems.malformed)).toBeLessThan(0.02);
      expect(corpus.every(({ messages }) => /^#### -?[\d.]+$/.test(String(messages.at(-1)!.content)))).toBe(true);
    });
  }

  it("of the code game: its answers are those of the example", () => {
    const random = new Random(4);
    const draw = () => String(random.integer(0, 9999)).padStart(4, "0");
    for (let i = 0; i < 200; i++) {
      const [secret, guess] = [draw(), draw()];
      expect(answerGuess(secret, guess)).toBe(answerOfExample(secret, guess));
    }
  });

  it("of the code game: following the answers always wins, and held-out codes are never secrets", () => {
    const random = new Random(1);
    for (let i = 0; i < 10_000; i++) {
      const code = String(i).padStart(4, "0");
      const guesses = writeCodeDemonstration(random, code, { follow: 1, repeat: 0 });
      expect(guesses.at(-1)!.content).toBe(code);
    }
    const games = makeCorpus(8000, 4, secondStage).filter((dialog) => dialog.tools.length === 0);
    const repeats = games.filter(({ messages }) => messages[2]!.content === messages[4]?.content).length / games.length;
    expect(Math.abs(repeats - secondCodeNoise.repeat)).toBeLessThan(0.03);
    for (let i = 0; i < 200; i++)
      expect(isHeldOutCode(drawCode(random, i % 2 ? "train" : "heldOut"))).toBe(i % 2 === 0);
  });
});

describe("the embedded policy", () => {
  let model: Awaited<ReturnType<typeof loadModel>>;
  beforeAll(async () => {
    model = await loadModel({ path: embeddedPolicyPath, contextSize: 256, maxSequences: 2, threads: 1 });
  });
  afterAll(() => model.dispose());

  it("agrees with the model card", () => {
    expect(model.info).toMatchObject({
      architecture: "qwen3",
      vocabSize: 640,
      layerCount: 2,
      embeddingSize: 128,
      addBos: false,
    });
    expect(model.info.parameterCount).toBe(475_904);
    expect(model.chatTemplate).toBe(chatTemplate);
    expect(model.info.endOfGenerationTokens).toContain(model.tokenize("<|im_end|>")[0]);
  });

  it("tokenizes as its own trainer did, and back", () => {
    const tokens = Array.from({ length: model.info.vocabSize }, (_, id) => id);
    const vocabulary = readVocabulary();
    expect(vocabulary.tokens).toHaveLength(tokens.length);
    const template = new ChatTemplate(chatTemplate);
    const texts = makeCorpus(50, 9, firstStage).map(({ messages, tools }) => template.render(messages, { tools }));
    texts.push("Größe: 12,5 € — naïve\n\n  x\t<|im_end|> <tool_call>\n日本", "");
    for (const text of texts) {
      const ids = model.tokenize(text);
      expect([...ids]).toEqual(encode(vocabulary, text));
      expect(model.detokenize(ids)).toBe(text);
    }
    expect(model.tokenize(texts[0]!).length).toBeLessThan(180);
  });

  it("has a template that renders tools compactly, calls as the policy writes them, and tools without a system message", () => {
    const template = new ChatTemplate(chatTemplate);
    const alone = template.render([{ role: "user", content: "How many?" }], { tools: [calculatorSchema] });
    expect(alone).toContain('<|im_start|>system\n<tools>\n{"name":"calculator"');
    const messages = [
      ...makePrompt("How many?"),
      {
        role: "assistant" as const,
        content: "",
        tool_calls: [{ function: { name: "calculator", arguments: { expression: "1+1" } } }],
      },
      { role: "tool" as const, content: "2" },
    ];
    expect(template.render(messages, { tools: [calculatorSchema], addGenerationPrompt: true })).toBe(
      '<|im_start|>system\nYou solve problems. Use the tool to compute, then answer with ####.\n<tools>\n{"name":"calculator","arguments":{"expression":"string"}}\n</tools><|im_end|>\n' +
        "<|im_start|>user\nHow many?<|im_end|>\n" +
        '<|im_start|>assistant\n<tool_call>\n{"name":"calculator","arguments":{"expression":"1+1"}}\n</tool_call><|im_end|>\n' +
        "<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
  });
});

/** Tokens and merges as they stand in the shipped file. */
function readVocabulary(): { tokens: string[]; merges: string[] } {
  const data = readFileSync(embeddedPolicyPath);
  let at = 8;
  const u32 = () => {
    at += 4;
    return data.readUInt32LE(at - 4);
  };
  const u64 = () => {
    at += 8;
    return Number(data.readBigUInt64LE(at - 8));
  };
  const text = () => {
    const n = u64();
    at += n;
    return data.toString("utf8", at - n, at);
  };
  const sizes: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
  const value = (type: number): unknown => {
    if (type === 8) return text();
    if (type !== 9) {
      at += sizes[type]!;
      return null;
    }
    const inner = u32();
    const count = u64();
    return Array.from({ length: count }, () => value(inner));
  };
  u64();
  const entries = u64();
  const found: Record<string, unknown> = {};
  for (let i = 0; i < entries; i++) {
    const key = text();
    found[key] = value(u32());
  }
  return { tokens: found["tokenizer.ggml.tokens"] as string[], merges: found["tokenizer.ggml.merges"] as string[] };
}
