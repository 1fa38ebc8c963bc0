import { join } from "node:path";
import type { GenerateOptions, JsonSchema, ToolSchema } from "@cria/core";
import { amount } from "@cria/core/testing";
import { type LlamaModel, loadModel, writeGguf } from "@cria/engine";
import { describeTinyModel, TinyModels } from "@cria/engine/testing";
import {
  defineToolSchema,
  findArgumentError,
  getToolFormat,
  jsonSchemaToGrammar,
  toolCallGrammar,
  toolFormats,
} from "@cria/tools";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// Any text that a random model writes under a grammar satisfies the schema that the grammar was made from.
fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const models = new TinyModels();
let model: LlamaModel;
let policy: LlamaModel;

/** A random model that likes the characters which end things: its texts come to an end. */
async function loadChatty(): Promise<LlamaModel> {
  const file = describeTinyModel({ architecture: "llama", tied: false, contextLength: 2048, embeddingScale: 0.3 });
  const embedding = 32;
  const [input, output] = ["token_embd.weight", "output.weight"].map(
    (name) => file.tensors.find((t) => t.name === name)!,
  );
  // Every hidden state has a large first entry, which the wanted tokens read.
  for (let token = 0; token * embedding < input!.data.length; token++) {
    input!.data[token * embedding] = 6;
    output!.data[token * embedding] = 0;
  }
  for (const char of '"}]\n<`') output!.data[char.charCodeAt(0) * embedding] = 1.2;
  const path = join(models.folder, "chatty.gguf");
  await writeGguf(path, file);
  return models.load({}, { path, contextSize: 2048, maxSequences: 8 });
}

beforeAll(async () => {
  model = await loadChatty();
  policy = await loadModel({
    path: join(import.meta.dirname, "..", "..", "..", "models", "cria-tiny.gguf"),
    threads: 1,
  });
});
afterAll(async () => {
  await policy.dispose();
  await models.cleanUp();
});

async function write(grammar: string, seed: number, options: Partial<GenerateOptions> = {}, by = model) {
  const sequence = by.createSequence();
  try {
    return await sequence.generate(by.tokenize("Go"), { grammar, seed, maxTokens: 1500, ...options });
  } finally {
    sequence.dispose();
  }
}

/** The error in a value, by the validator that tools use; null: none. */
function findProblem(schema: JsonSchema, value: unknown): string | null {
  return findArgumentError({ type: "function", function: { name: "f", parameters: schema } }, value);
}

const keys = fc.constantFrom("a", "ab", "b", "äö", 'q"q', "x y", "a\\b", "__proto__2", "<k>");
const patterns = [
  "^[a-z]{2,5}$",
  "^\\d{3}-\\d{4}$",
  'x"?',
  "^(?:yes|no)$|^maybe",
  "^\\s*[^a-c\\s]+\\\\$",
  "[\\u00e0-\\u00ff]{2}",
  "^.$",
];
const bound = fc.integer({ min: -2000, max: 2000 });
const text: fc.Arbitrary<JsonSchema> = fc.oneof(
  fc.constant({ type: "string" }),
  fc
    .tuple(fc.nat(4), fc.nat(5))
    .map(([minLength, more]) => ({ type: "string", minLength, maxLength: minLength + more })),
  fc.constantFrom(...patterns).map((pattern) => ({ type: "string", pattern })),
  fc.constantFrom("date", "time", "date-time", "uuid", "email").map((format) => ({ type: "string", format })),
  fc
    .uniqueArray(fc.string({ maxLength: 6 }), { minLength: 1, maxLength: 4 })
    .map((list) => ({ type: "string", enum: list })),
);
const number: fc.Arbitrary<JsonSchema> = fc.oneof(
  fc.constantFrom({ type: "number" }, { type: "integer" }),
  fc.tuple(bound, fc.nat(500)).map(([minimum, more]) => ({ type: "integer", minimum, maximum: minimum + more })),
  fc.tuple(bound, fc.nat(3)).map(([minimum, more]) => ({ type: "number", minimum, maximum: minimum + more })),
  fc.tuple(bound, bound).map(([low, more]) => ({
    type: "number",
    exclusiveMinimum: low / 8,
    exclusiveMaximum: low / 8 + 3 + Math.abs(more) / 4,
  })),
  bound.map((minimum) => ({ type: "integer", minimum: minimum / 3 })),
  bound.map((exclusiveMaximum) => ({ type: "number", exclusiveMaximum })),
);
const leaf = fc.oneof(
  text,
  number,
  fc.constantFrom<JsonSchema>(
    { type: "boolean" },
    { type: "null" },
    { const: { a: [1, "<"] } },
    { enum: ["t", 5, null, [true]] },
  ),
  fc.constantFrom<JsonSchema>(
    { type: ["string", "null"] },
    { type: ["integer", "boolean"] },
    { type: "integer", nullable: true },
  ),
);
const { schema } = fc.letrec<{ schema: JsonSchema; object: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    leaf,
    tie("object"),
    fc
      .tuple(tie("schema"), fc.nat(3), fc.nat(3))
      .map(([items, minItems, more]) => ({ type: "array", items, minItems, maxItems: minItems + more })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((prefixItems) => ({ type: "array", prefixItems })),
    fc
      .tuple(tie("schema"), tie("schema"))
      .map(([a, items]) => ({ type: "array", prefixItems: [a], items, maxItems: 4 })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.tuple(tie("object"), tie("schema")).map(([one, extra]) => ({
      allOf: [
        { ...one, additionalProperties: undefined },
        { type: "object", properties: { extra }, required: ["extra"] },
      ],
    })),
    fc.constant({
      oneOf: [
        { type: "object", properties: { k: { const: 1 } }, required: ["k"] },
        { type: "object", properties: { k: { const: 2 }, v: { type: "string" } }, required: ["k"] },
      ],
    }),
    fc.constant({ $ref: "#/$defs/tree" }),
  ),
  object: fc
    .tuple(
      fc.uniqueArray(keys, { maxLength: 4 }),
      fc.array(tie("schema"), { minLength: 4, maxLength: 4 }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      fc.constantFrom(undefined, undefined, false, true, { type: "integer" }),
    )
    .map(([names, values, needed, additionalProperties]) => ({
      type: "object",
      properties: Object.fromEntries(names.map((name, i) => [name, values[i]!])),
      required: names.filter((_, i) => needed[i]),
      ...(additionalProperties === undefined ? {} : { additionalProperties }),
    })),
}));
const tree = {
  type: "object",
  properties: { value: { type: "integer" }, next: { $ref: "#/$defs/tree" } },
  required: ["value"],
};
/** With the definitions that its references need. */
const whole = schema.map((one): JsonSchema => ({ ...one, $defs: { tree } }));

describe("jsonSchemaToGrammar", () => {
  it("every text satisfies the schema", async () => {
    let finished = 0;
    await fc.assert(
      fc.asyncProperty(whole, fc.nat(1000), async (one, seed) => {
        const grammar = jsonSchemaToGrammar(one);
        const { text: written, finishReason } = await write(grammar, seed);
        if (finishReason !== "stop") return;
        finished++;
        const value: unknown = JSON.parse(written);
        expect(findProblem(one, value), `${written}\n${JSON.stringify(one)}`).toBeNull();
      }),
      { numRuns: amount(50, 150) },
    );
    expect(finished).toBeGreaterThan(amount(40, 120));
  });
});

describe("toolCallGrammar", () => {
  // Formats that can call any tool; python has its own test.
  const names = toolFormats.names().filter((name) => name !== "python" && toolFormats.get(name).grammar !== null);
  const parameters = fc
    .tuple(
      fc.uniqueArray(fc.constantFrom("city", "days", "x_1", "äö"), { minLength: 1, maxLength: 3 }),
      fc.array(schema, { minLength: 3, maxLength: 3 }),
    )
    .map(([own, values]) => ({
      type: "object",
      properties: Object.fromEntries(own.map((name, i) => [name, values[i]!])),
      required: own.slice(1),
      additionalProperties: false,
      $defs: { tree },
    }));
  const tools = fc
    .uniqueArray(fc.constantFrom("get_weather", "math.add", "x-1"), { minLength: 1, maxLength: 3 })
    .chain((own) =>
      fc.tuple(
        ...own.map((name) =>
          parameters.map((one): ToolSchema => ({ type: "function", function: { name, parameters: one } })),
        ),
      ),
    );

  it.each(names)(
    "%s: every turn is one call of a tool that the parser reads and the schema lets through",
    async (format) => {
      const { parse } = getToolFormat(format);
      let finished = 0;
      await fc.assert(
        fc.asyncProperty(tools, fc.nat(1000), fc.boolean(), async (list, seed, isNamed) => {
          const name = isNamed ? list.at(-1)!.function.name : undefined;
          const grammar = toolCallGrammar(format, list, { name })!;
          const { text: written, finishReason } = await write(grammar, seed);
          if (finishReason !== "stop") return;
          finished++;
          const { calls, content } = parse(written, list);
          const where = `${written}\n${JSON.stringify(list)}`;
          expect(content, where).toBe("");
          expect(
            calls.map((call) => call.error),
            where,
          ).toEqual([undefined]);
          if (name !== undefined) expect(calls[0]!.name).toBe(name);
          const called = list.find((one) => one.function.name === calls[0]!.name);
          expect(called, where).toBeDefined();
          expect(findArgumentError(called!, calls[0]!.arguments), where).toBeNull();
        }),
        { numRuns: amount(20, 60) },
      );
      expect(finished).toBeGreaterThan(amount(10, 40));
    },
    120_000,
  );

  it.each(names)("%s: marks of the format inside of arguments end nothing", async (format) => {
    const marks = ["</parameter>", "<|call|>", "<|end|>", "</tool_call>", "[TOOL_CALLS]", "<｜tool▁call▁end｜>"];
    // Texts of Gemma end at a mark without escapes: patterns that ask for "<" cannot be written.
    const pattern = format.includes("gemma") ? "^a$" : "^</parameter>$|^<\\|end\\|>$";
    const items = { anyOf: [{ enum: marks }, { type: "string", pattern }] };
    const list = { type: "array", items, minItems: 2, maxItems: 3 };
    const marked: ToolSchema = {
      type: "function",
      function: {
        name: "f",
        parameters: {
          type: "object",
          properties: { list, o: { const: { "<|call|>": "</parameter>" } } },
          required: ["list"],
        },
      },
    };
    for (let seed = 0; seed < 5; seed++) {
      const turn = await write(toolCallGrammar(format, [marked])!, seed);
      const { calls } = getToolFormat(format).parse(turn.text, [marked]);
      expect(
        calls.map((call) => call.error),
        turn.text,
      ).toEqual([undefined]);
      expect(findArgumentError(marked, calls[0]!.arguments), turn.text).toBeNull();
    }
  });

  const add: ToolSchema = {
    type: "function",
    function: {
      name: "add",
      parameters: { type: "object", properties: { a: { type: "integer" }, note: { type: "string" } }, required: ["a"] },
    },
  };
  const code: ToolSchema = {
    type: "function",
    function: {
      name: "run",
      parameters: { type: "object", properties: { code: { type: "string" } }, required: ["code"] },
    },
  };

  const withOne = (type: string) => ({ type: "object", properties: { x: { type } }, required: ["x"] });

  it.each(names)("%s: several calls where asked for", async (format) => {
    const counts = new Set<number>();
    // Without texts, which a random model seldom ends where only a whole mark ends them.
    const list = [defineToolSchema("count", "", withOne("integer")), defineToolSchema("flip", "", withOne("boolean"))];
    for (let seed = 0; seed < 30; seed++) {
      const turn = await write(toolCallGrammar(format, list, { parallel: true })!, seed, { temperature: 1.3 });
      if (turn.finishReason !== "stop") continue;
      const { calls } = getToolFormat(format).parse(turn.text, list);
      for (const call of calls) {
        expect(call.error, turn.text).toBeUndefined();
        expect(findArgumentError(list[call.name === "count" ? 0 : 1]!, call.arguments)).toBeNull();
      }
      counts.add(calls.length);
    }
    expect(counts).toContain(1);
    if (format !== "gpt_oss") expect(Math.max(...counts)).toBeGreaterThan(1);
  });

  it("python: a fence whose code is the argument of the code tool", async () => {
    const grammar = toolCallGrammar("python", [add, code])!;
    for (let seed = 0; seed < 20; seed++) {
      const { text: written, finishReason } = await write(grammar, seed);
      if (finishReason !== "stop") continue;
      const { calls, content } = getToolFormat("python").parse(written, [add, code]);
      expect(content).toBe("");
      expect(calls).toEqual([{ name: "run", arguments: { code: written.slice(10, -4) } }]);
    }
    expect(toolCallGrammar("python", [add])).toBeNull();
    expect(toolCallGrammar("python", [add, code], { name: "add" })).toBeNull();
  });

  it("knows formats by their other names, and returns null for formats that it cannot write", () => {
    expect(toolCallGrammar("openai", [add])).toBe(toolCallGrammar("gpt_oss", [add]));
    expect(toolCallGrammar("./mine.ts#parse", [add])).toBeNull();
    expect(() => toolCallGrammar("hermes", [add], { name: "sub" })).toThrow(
      expect.objectContaining({ code: "data/unknown-tool", expected: expect.stringContaining("add"), received: "sub" }),
    );
    expect(() => toolCallGrammar("hermes", [])).toThrow(expect.objectContaining({ code: "data/unknown-tool" }));
    const spaced = { ...add, function: { ...add.function, name: "a b" } };
    expect(() => toolCallGrammar("qwen3_coder", [spaced])).toThrow(
      expect.objectContaining({ code: "data/unsupported-schema", subject: 'tool "a b"', received: "a b" }),
    );
  });

  // In its vocabulary <tool_call> is one token, whose text the grammar reads like any other.
  it("the embedded policy writes a call by its special tokens", async () => {
    const grammar = toolCallGrammar("hermes", [add])!;
    const special = policy.listSpecialTokens().find((token) => token.text === "<tool_call>")!;
    expect(special).toBeDefined();
    let [whole, bySpecial] = [0, 0];
    for (let seed = 0; seed < 6; seed++) {
      const prompt = "<|im_start|>user\nAdd 2 and 3.<|im_end|>\n<|im_start|>assistant\n";
      const sequence = policy.createSequence();
      const turn = await sequence.generate(policy.tokenize(prompt), { grammar, seed, maxTokens: 200 });
      sequence.dispose();
      if (turn.tokenIds[0] === special.id) bySpecial++;
      if (turn.finishReason !== "stop") continue;
      whole++;
      const { calls } = getToolFormat("hermes").parse(turn.text, [add]);
      expect(calls).toHaveLength(1);
      expect(findArgumentError(add, calls[0]!.arguments)).toBeNull();
    }
    expect(whole).toBeGreaterThan(0);
    expect(bySpecial).toBeGreaterThan(0);
  });
});
