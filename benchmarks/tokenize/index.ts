/**
 * Cost of the tokens between two turns: ours renders and tokenizes only the new messages. The peers do what agent loops
 * commonly do: render and tokenize the whole conversation again (with our Jinja engine, and with llama.cpp's, which is
 * native), or render it twice and tokenize the text between. All use the same llama.cpp tokenizer, Qwen2.5's template
 * and Qwen2's vocabulary. Rendering as in production is measured too: it renders the whole and tokenizes the changed
 * part.
 */
import { ChatTemplate, DeltaTokenizer, InferenceConversation } from "@cria/tokenizer-delta";
import { BundledVocabulary, createLlamaTemplate, readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { measureInterleaved, type Timing } from "../measure.js";
import type { Measured, Row } from "../row.js";
import { searchTool, writeConversation, writeToolAnswer } from "./conversation.js";

const SIZES = [1_000, 10_000, 100_000];
const TEMPLATE = "Qwen-Qwen2.5-7B-Instruct";
const tools = [searchTool];

type Contender = "ours" | "production" | "whole" | "wholeLlama" | "between";

export async function run(): Promise<Measured> {
  const source = readBundledTemplate(TEMPLATE);
  const template = new ChatTemplate(source, { bos_token: "", eos_token: "" });
  const llamaTemplate = await createLlamaTemplate(source);
  const vocabulary = await BundledVocabulary.load("qwen2");
  const [endOfTurn] = vocabulary.tokenize("<|im_end|>");
  const tokenizer = new DeltaTokenizer(template, vocabulary, { bosToken: null, endOfTurnTokens: [endOfTurn!] });
  const answer = writeToolAnswer(100, 90_000);

  const prepared = SIZES.map((size) => {
    const before = writeConversation(size);
    const after = [...before, answer];
    const heldIds = tokenizer.encodeWhole(before, tools).slice(0, -1);
    const production = new InferenceConversation(tokenizer, tools);
    const contenders: Record<Contender, () => Int32Array> = {
      ours: () => tokenizer.encodeDelta([answer], true),
      production: () => production.encodeTurn(after).tokenIds,
      whole: () => vocabulary.tokenize(template.render(after, { tools, addGenerationPrompt: true })),
      wholeLlama: () =>
        vocabulary.tokenize(llamaTemplate.render(template.makeVariables(after, { tools, addGenerationPrompt: true }))),
      between: () => {
        const held = template.render(before, { tools });
        return vocabulary.tokenize(template.render(after, { tools, addGenerationPrompt: true }).slice(held.length - 1));
      },
    };
    // Correct before fast: the delta completes the whole, with every contender.
    const whole = contenders.whole();
    expectSame("whole rendering by llama.cpp", contenders.wholeLlama(), whole);
    expectSame("delta", Int32Array.from([...heldIds, ...contenders.ours()]), whole);
    expectSame("text between", Int32Array.from([...heldIds, ...contenders.between()]), whole);
    production.encodeTurn(before.slice(0, 2));
    production.encodeTurn(after);
    expectSame("production rendering", production.contextIds, whole);
    return { size, tokens: whole.length, contenders };
  });

  const rows: Row[] = [];
  const timings = prepared.map(({ size, contenders }) =>
    measureInterleaved(contenders, { minRounds: size > 50_000 ? 9 : 15, budget: 2_000 }),
  );
  for (const [i, { tokens }] of prepared.entries()) {
    const time = timings[i]!;
    const peers = {
      "whole: llama.cpp's Jinja, then all tokens": micro(time.wholeLlama),
      "whole: Hugging Face's Jinja, then all tokens": micro(time.whole),
      "rendered twice, tokens of the text between": micro(time.between),
    };
    // In proportion to the conversation, which the peers render and tokenize, and we do not.
    const least = [1, 5, 50][i]!;
    const lead = Math.min(...Object.values(peers)) / micro(time.ours);
    rows.push({
      case: `conversation of ${tokens} tokens, delta of 100`,
      metric: `microseconds per delta, median (ours p95 ${(time.ours.p95 * 1000).toFixed(0)}, ${time.ours.runs} runs)`,
      ours: micro(time.ours),
      peers,
      target: `the best peer takes at least ${least} times as long`,
      met: lead >= least,
    });
    rows.push({
      case: `conversation of ${tokens} tokens, rendered as in production`,
      metric: "microseconds per turn, median: one rendering, tokens of what changed",
      ours: micro(time.production),
      peers: { "whole: Hugging Face's Jinja, then all tokens": micro(time.whole) },
      target: "less than the peer, which renders the same and tokenizes all",
      met: time.production.median < time.whole.median,
    });
  }
  const growth = (name: Contender) => timings.at(-1)![name].median / timings[0]![name].median;
  rows.push({
    case: `from ${prepared[0]!.tokens} to ${prepared.at(-1)!.tokens} tokens of conversation`,
    metric: "growth of the cost of one delta, times",
    ours: growth("ours"),
    peers: {
      "whole: llama.cpp's Jinja, then all tokens": growth("wholeLlama"),
      "whole: Hugging Face's Jinja, then all tokens": growth("whole"),
      "rendered twice, tokens of the text between": growth("between"),
    },
    target: "at most 2, for caches: it does not grow with the conversation",
    met: growth("ours") <= 2,
  });
  const byDelta = measureInterleaved({
    short: () => tokenizer.encodeDelta([writeToolAnswer(100, 1)], true),
    long: () => tokenizer.encodeDelta([writeToolAnswer(10_000, 1)], true),
  });
  rows.push({
    case: "from a delta of 100 tokens to one of 10,000",
    metric: "growth of the cost of one delta, times",
    ours: byDelta.long.median / byDelta.short.median,
    peers: {},
    target: "at most 150: it grows with the delta",
    met: byDelta.long.median / byDelta.short.median <= 150,
  });
  await vocabulary.dispose();
  return { rows };
}

function micro({ median }: Timing): number {
  return median * 1000;
}

function expectSame(what: string, received: Int32Array, expected: Int32Array): void {
  const same = received.length === expected.length && received.every((id, i) => id === expected[i]);
  if (!same) throw new Error(`${what} gives other tokens than the whole rendering`);
}
