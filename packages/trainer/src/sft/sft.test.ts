import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, describe, expect, it } from "vitest";
import { checkConfig } from "../config/check-config.js";
import { sftConfigSchema } from "../config/sft-config.js";
import { readExamples } from "../task/read-examples.js";
import { BucketedBatches } from "./bucketed-batches.js";
import { runSft } from "./run-sft.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const talk = (question: string, answer: string) => ({
  messages: [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ],
});

function writeRows(name: string, rows: unknown[]): string {
  const file = join(models.folder, name);
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

const rows = writeRows("talks.jsonl", [talk("a?", "yes"), talk("b?", "no"), talk("cc?", "yes"), talk("dd?", "no no")]);

let count = 0;

async function configure(more: { model?: object; data?: object; trainer?: object } = {}) {
  return checkConfig(
    sftConfigSchema,
    {
      model: { path: await models.write(), ...more.model },
      data: { train_files: rows, train_batch_size: 4, ...more.data },
      optim: { lr: 1e-2, lr_warmup_steps: 2 },
      trainer: {
        default_local_dir: models.folder,
        // Each run from the start, unless a test names one.
        experiment_name: `run-${count++}`,
        total_training_steps: 1,
        output_path: "out/trained.gguf",
        threads: 1,
        ...more.trainer,
      },
    },
    "test",
  );
}

const run = async (more: Parameters<typeof configure>[0] = {}) => runSft(await configure(more), models.folder);

describe("cria sft", () => {
  it("learns the answers, and writes a model that gives them", async () => {
    const result = await run({ trainer: { total_training_steps: 120 } });
    const trained = await models.load({}, { path: result.output });
    const tokenizer = DeltaTokenizer.forModel(trained);
    for (const [question, answer] of [
      ["a?", "yes"],
      ["dd?", "no no"],
    ] as const) {
      const prompt = tokenizer.encodePrompt([{ role: "user", content: question }]);
      const turn = await trained.createSequence().generate(prompt, { maxTokens: 12, temperature: 0 });
      expect(turn).toMatchObject({ text: answer, finishReason: "stop" });
    }
  });

  it("with LoRA writes an adapter that the engine loads, and the same seed gives the same loss", async () => {
    const config = { model: { lora_rank: 4, path: await models.write() }, trainer: { total_training_steps: 3 } };
    const first = await run(config);
    const second = await run({ ...config, trainer: { total_training_steps: 3, output_path: "out/again.gguf" } });
    expect(second.loss).toBe(first.loss);
    await models.load({}, { path: config.model.path, lora: { path: first.output } });
  });

  it("refuses bad input before it trains, and leaves no file", async () => {
    const bad = async (name: string, lines: unknown[]) => run({ data: { train_files: writeRows(name, lines) } });
    const column = (subject: RegExp, more: object = {}) => ({
      code: "data/bad-row",
      subject: expect.stringMatching(subject),
      ...more,
    });
    await expect(bad("1.jsonl", [talk("a", "b"), { message: [] }])).rejects.toMatchObject(
      column(/1\.jsonl, line 2, column "messages"$/),
    );
    await expect(bad("2.jsonl", [{ messages: [{ role: "robot", content: "" }] }])).rejects.toMatchObject(
      column(/column "messages\.0\.role"$/),
    );
    await expect(bad("3.jsonl", [{ messages: [{ role: "user", content: "a" }] }])).rejects.toMatchObject(
      column(/column "messages"$/, { expected: expect.stringContaining("assistant") }),
    );
    await expect(bad("4.jsonl", [{ ...talk("a", "b"), tools: "calculator" }])).rejects.toMatchObject(
      column(/column "tools"$/),
    );
    await expect(
      bad("6.jsonl", [talk("a", "b"), { messages: [{ role: "user" }, { role: "assistant", content: "b" }] }]),
    ).rejects.toMatchObject(column(/6\.jsonl, line 2, column "messages\.0\.content"$/));
    await expect(bad("5.jsonl", [])).rejects.toMatchObject({
      code: "data/empty",
      subject: expect.stringContaining("5.jsonl"),
    });
    await expect(run({ data: { max_length: 4 } })).rejects.toMatchObject({
      code: "data/empty",
      received: expect.stringMatching(/\b4 /),
    });
    await expect(run({ data: { train_files: "none.jsonl" } })).rejects.toMatchObject({
      code: "data/unreadable",
      subject: expect.stringContaining("none.jsonl"),
    });
    await expect(run({ model: { path: "none.gguf" } })).rejects.toMatchObject({
      code: "engine/file-not-found",
      subject: expect.stringContaining("none.gguf"),
    });
    mkdirSync(join(models.folder, "taken.gguf"));
    await expect(run({ trainer: { output_path: "taken.gguf" } })).rejects.toMatchObject({
      code: "config/output-not-writable",
      subject: expect.stringMatching(/output_path.*taken\.gguf$/),
    });
    await expect(run({ trainer: { output_path: join(rows, "below", "x.gguf") } })).rejects.toMatchObject({
      code: "config/output-not-writable",
    });
    const left = readdirSync(join(models.folder, "out")).filter((name) => !/^(trained|again)\.gguf$/.test(name));
    expect(left).toEqual([]);
  });

  it("data.map makes conversations of a set's own columns, and leaves records out", async () => {
    const file = writeRows("qa.jsonl", [
      { q: "a?", a: "yes" },
      { q: "b?", a: "no" },
      { q: "", a: "left out" },
    ]);
    writeFileSync(
      join(models.folder, "map.ts"),
      `type Record = { q: string; a: string };
      export const row = ({ q, a }: Record) =>
        q === "" ? null : { messages: [{ role: "user", content: q }, { role: "assistant", content: a }] };
      export const wrong = () => "no row";
      export const notOne = 3;`,
    );
    const mapped = (map: string) => run({ data: { train_files: file, map, train_batch_size: 2 } });
    // The same bits as the same conversations from a file.
    const plain = writeRows("qa-plain.jsonl", [talk("a?", "yes"), talk("b?", "no")]);
    const { loss } = await run({ data: { train_files: plain, train_batch_size: 2 } });
    expect((await mapped("./map.ts#row")).loss).toBe(loss);
    await expect(mapped("./map.ts#wrong")).rejects.toMatchObject({
      code: "data/bad-map",
      subject: expect.stringMatching(/qa\.jsonl, line 1$/),
      received: "string",
    });
    await expect(mapped("./map.ts#notOne")).rejects.toMatchObject({
      code: "config/bad-value",
      subject: 'data.map "./map.ts#notOne"',
      received: "number",
    });
    await expect(run({ data: { train_files: file } })).rejects.toMatchObject({
      code: "data/bad-row",
      subject: expect.stringMatching(/line 1, column "messages"$/),
      remedy: expect.stringMatching(/data\.messages_key.*data\.map: \.\/map\.ts#row/),
    });
  });

  it("an abort ends it without a file", async () => {
    const config = await configure({ trainer: { total_training_steps: 100_000, output_path: "out/aborted.gguf" } });
    const controller = new AbortController();
    const steps: string[] = [];
    const report = ({ type }: { type: string }) => {
      if (type !== "step") return;
      steps.push(type);
      controller.abort(new Error("enough"));
    };
    await expect(runSft(config, models.folder, { signal: controller.signal, report })).rejects.toThrow();
    expect(steps).toHaveLength(1);
    expect(existsSync(join(models.folder, "out", "aborted.gguf"))).toBe(false);
  });
});

describe("the tokens of the loss", () => {
  it("are every assistant token and end of turn, and nothing else", async () => {
    const model = await models.load();
    const tokenizer = DeltaTokenizer.forModel(model);
    const file = writeRows("turns.jsonl", [
      { messages: [...talk("q1", "one").messages, ...talk("q2", "two").messages] },
    ]);
    const { examples, dropped } = await readExamples([file], tokenizer, {
      messagesKey: "messages",
      toolsKey: "tools",
      maxLength: 200,
    });
    expect(dropped).toBe(0);
    const { tokenIds, lossMask } = examples[0]!;
    expect(model.detokenize([...tokenIds].filter((_, i) => lossMask[i]))).toBe("one<|im_end|>two<|im_end|>");
    expect(model.detokenize(tokenIds)).toBe(
      "<|im_start|>user\nq1<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n<|im_start|>user\nq2<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>",
    );
  });
});

describe("text of users and tools", () => {
  it("makes control tokens only with data.allow_control_tokens", async () => {
    const model = await models.load();
    const file = writeRows("forged.jsonl", [talk("q<|im_end|>", "one")]);
    const [end] = model.tokenize("<|im_end|>");
    for (const allowControlTokens of [false, true]) {
      const { examples, unsplit } = await readExamples([file], DeltaTokenizer.forModel(model, { allowControlTokens }), {
        messagesKey: "messages",
        toolsKey: "tools",
        maxLength: 200,
      });
      expect(unsplit).toBe(0);
      expect([...examples[0]!.tokenIds].filter((id) => id === end)).toHaveLength(allowControlTokens ? 3 : 2);
    }
  });
});

describe("BucketedBatches", () => {
  const examples = Array.from({ length: 48 }, (_, i) => ({ tokenIds: new Int32Array(1 + ((i * 37) % 48)), id: i }));

  it("hands out each example once an epoch, in batches of similar length", () => {
    const batches = new BucketedBatches(examples, 6, 1, 1e6);
    const epoch = Array.from({ length: 8 }, () => batches.next());
    expect(
      epoch
        .flat()
        .map((e) => e.id)
        .sort((a, b) => a - b),
    ).toEqual(examples.map((e) => e.id));
    for (const batch of epoch) {
      const lengths = batch.map((e) => e.tokenIds.length);
      expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThan(6);
    }
  });

  it("draws batches at random where they are not grouped, and goes on with no others", () => {
    const open = (isGrouped: boolean) => new BucketedBatches(examples, 6, 1, 1e6, isGrouped);
    const batches = open(false);
    const epoch = Array.from({ length: 8 }, () => batches.next().map(({ id, tokenIds }) => [id, tokenIds.length]));
    expect(new Set(epoch.flat().map(([id]) => id)).size).toBe(48);
    const spans = epoch.map((batch) => batch.map(([, length]) => length!)).map((l) => Math.max(...l) - Math.min(...l));
    expect(Math.min(...spans)).toBeGreaterThan(12);
    const again = open(false);
    again.restore(batches.save(3));
    expect(again.next().map(({ id }) => id)).toEqual(epoch[3]!.map(([id]) => id));
    expect(() => open(true).restore(batches.save())).toThrow(
      expect.objectContaining({
        code: "data/other-loader",
        subject: expect.stringMatching(/: grouped$/),
        remedy: expect.stringContaining("data.group_by_length"),
      }),
    );
    const { grouped: _, ...earlier } = open(true).save(2);
    expect(() => open(true).restore(earlier)).not.toThrow();
    expect(() => open(false).restore(earlier)).toThrow(
      expect.objectContaining({ code: "data/other-loader", subject: expect.stringMatching(/: grouped$/) }),
    );
  });

  it("goes on for ever, also with fewer examples than a batch; the seed decides", () => {
    const few = new BucketedBatches(examples.slice(0, 2), 4, 1, 1e6);
    expect(few.next()).toHaveLength(4);
    const ids = (seed: number) => {
      const batches = new BucketedBatches(examples, 6, seed, 1e6);
      return Array.from({ length: 20 }, () => batches.next().map((e) => e.id));
    };
    expect(ids(3)).toEqual(ids(3));
    expect(ids(3)).not.toEqual(ids(4));
  });
});
