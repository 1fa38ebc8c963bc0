import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { ShardGradient } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { TinyModels, weightedLogprobs } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

// Child processes and workers load the built package: `npm test` builds first.
const engine = new URL("../dist/index.js", import.meta.url).href;

function runChild(code: string) {
  const program = `import { loadModel } from ${JSON.stringify(engine)};\n${code}`;
  return spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", timeout: 240_000 });
}

describe("dispose", () => {
  it("ends running requests, may be called twice, and refuses later use", async () => {
    const model = await models.load({}, { contextSize: 4096, lora: { rank: 4, alpha: 8 } });
    const sequence = model.createSequence();
    const running = sequence.generate([1, 2], { maxTokens: 4000, seed: 1, stopTokens: [] });
    const disposed = Promise.all([model.dispose(), model.dispose()]);
    const gone = { code: "engine/disposed", subject: "model" };
    // Immediately, while another thread is still freeing.
    expect(() => model.createSequence()).toThrow(expect.objectContaining(gone));
    await disposed;
    expect((await running).finishReason).toBe("aborted");
    expect(() => model.tokenize("x")).toThrow(expect.objectContaining(gone));
    expect(() => model.createSequence()).toThrow(expect.objectContaining(gone));
    await expect(sequence.generate([1], { maxTokens: 1 })).rejects.toMatchObject(gone);
    await expect(model.score([{ tokenIds: [1, 2] }])).rejects.toMatchObject(gone);
    sequence.dispose();
  });

  for (const options of [{}, { compute: (_: unknown, here: () => Promise<ShardGradient>) => here() }]) {
    it(`within a step ${"compute" in options ? "that is computed elsewhere " : ""}hides no error of the loss`, async () => {
      const model = await models.load({}, { lora: { rank: 2 } });
      const own = new Error("the loss's own");
      const loss = () => {
        void model.dispose();
        throw own;
      };
      const step = model.train([{ tokenIds: [1, 2, 3], lossMask: [0, 1, 1] }], loss, null, options);
      await expect(step).rejects.toBe(own);
    });
  }

  it("a sequence: twice, in flight, and use after", async () => {
    const model = await models.load({}, { contextSize: 4096 });
    const sequence = model.createSequence();
    const running = sequence.generate([1, 2], { maxTokens: 4000, seed: 1, stopTokens: [] });
    const busy = { code: "engine/sequence-busy", subject: "sequence" };
    await expect(sequence.generate([1], { maxTokens: 1 })).rejects.toMatchObject(busy);
    expect(() => sequence.fork()).toThrow(expect.objectContaining(busy));
    sequence.dispose();
    sequence.dispose();
    expect((await running).finishReason).toBe("aborted");
    await expect(sequence.generate([1], { maxTokens: 1 })).rejects.toMatchObject({
      code: "engine/disposed",
      subject: "sequence",
    });
  });
});

describe("several at once", () => {
  it("two models do not disturb each other", async () => {
    const path = await models.write();
    const [a, b] = await Promise.all([models.load({}, { path }), models.load({}, { path })]);
    const run = (model: typeof a) =>
      model.createSequence().generate([3, 4, 5], { maxTokens: 20, seed: 2, stopTokens: [] });
    const results = await Promise.all([run(a), run(b), run(a), run(b)]);
    for (const result of results) expect([...result.tokenIds]).toEqual([...results[0]!.tokenIds]);
    await a.dispose();
    expect([...(await run(b)).tokenIds]).toEqual([...results[0]!.tokenIds]);
  });

  it("generation, scoring and training run side by side", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 }, maxSequences: 4 });
    const tokenIds = [1, 2, 3, 4, 5, 6, 7];
    const batch = [{ tokenIds, lossMask: [0, 0, 1, 1, 1, 1, 1], columns: { weights: tokenIds.map(() => -1) } }];
    const work: Promise<unknown>[] = [];
    for (let i = 0; i < 10; i++) {
      work.push(model.createSequence().generate([i + 1, 2], { maxTokens: 20, seed: i, stopTokens: [] }));
      work.push(model.score([{ tokenIds }]));
      work.push(model.train(batch, weightedLogprobs, { learningRate: 1e-3 }));
    }
    await Promise.all(work);
  });

  it("worker threads load their own, and may be ended in flight", async () => {
    const path = await models.write();
    const code = `
      const { parentPort } = require("node:worker_threads");
      import(${JSON.stringify(engine)}).then(async ({ loadModel }) => {
        const model = await loadModel({ path: ${JSON.stringify(path)}, contextSize: 4096, maxSequences: 2, threads: 1 });
        const { tokenIds } = await model.createSequence().generate([3, 4], { maxTokens: 5, seed: 1, stopTokens: [] });
        model.createSequence().generate([1], { maxTokens: 4000, seed: 1, stopTokens: [] });
        parentPort.postMessage([...tokenIds]);
      });`;
    const answers: number[][] = [];
    for (let i = 0; i < 3; i++) {
      const worker = new Worker(code, { eval: true, execArgv: [] });
      answers.push(
        await new Promise((resolve, reject) => {
          worker.once("message", resolve);
          worker.once("error", reject);
        }),
      );
      await worker.terminate();
    }
    expect(answers[0]).toHaveLength(5);
    expect(answers[1]).toEqual(answers[0]);
  });
});

describe("process exit", () => {
  for (const [name, work] of [
    ["while generating", "model.createSequence().generate([1], { maxTokens: 4000, seed: 1, stopTokens: [] });"],
    [
      "while training",
      "const t = Array.from({ length: 60 }, (_, i) => i + 1); model.train(Array.from({ length: 64 }, () => ({ tokenIds: t, lossMask: t.map((_, i) => i ? 1 : 0) })), ({ logprobs }) => ({ loss: 0, dLogprobs: logprobs }), null);",
    ],
    [
      "while disposing",
      "model.createSequence().generate([1], { maxTokens: 4000, seed: 1, stopTokens: [] }); model.dispose();",
    ],
    ["while loading", "loadModel({ path, contextSize: 64 });"],
  ] as const) {
    it(`${name}: the process ends at once, with its exit code`, async () => {
      const path = await models.write();
      const child = runChild(`
        const path = ${JSON.stringify(path)};
        const model = await loadModel({ path, contextSize: 4096, maxSequences: 2, lora: { rank: 4 } });
        ${work}
        setTimeout(() => process.exit(7), 20);`);
      expect(child.stderr).toBe("");
      expect(child.signal).toBeNull();
      expect(child.status).toBe(7);
    });
  }

  it("ends by itself when nothing is left to do, without dispose", async () => {
    const path = await models.write();
    const child = runChild(`
      const model = await loadModel({ path: ${JSON.stringify(path)}, contextSize: 64, maxSequences: 2 });
      await model.createSequence().generate([1], { maxTokens: 3, seed: 1, stopTokens: [] });`);
    expect(child.stderr).toBe("");
    expect(child.status).toBe(0);
  });
});

describe("disk full at save", () => {
  it("is an error with its reason; the process goes on and no part of a file stays", async () => {
    const path = await models.write();
    const program = `import { loadModel } from ${JSON.stringify(engine)};
      const model = await loadModel({ path: ${JSON.stringify(path)}, contextSize: 64, maxSequences: 2, trainable: "full" });
      await model.saveModel(${JSON.stringify(path)} + ".full").catch(({ code, subject }) => console.log(code, subject));
      console.log("goes on");`;
    // A limit on file sizes makes writes fail as a full disk does.
    const shell = 'trap \'\' XFSZ; ulimit -f 16; exec "$0" --input-type=module -e "$1"';
    const child = spawnSync("bash", ["-c", shell, process.execPath, program], { encoding: "utf8", timeout: 240_000 });
    expect(child.stdout).toBe(`engine/write-failed ${path}.full\ngoes on\n`);
    expect(readdirSync(models.folder).filter((name) => name.includes("full"))).toEqual([]);
  });
});
