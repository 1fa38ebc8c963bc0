import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LlamaModel, type LoadModelOptions, loadModel, writeGguf } from "@cria/engine";
import { describeTinyModel, TinyModels, textArchitectures } from "@cria/engine/testing";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it, vi } from "vitest";
import { missingModel, realModel } from "../../../../scripts/real-model.mjs";
import { embeddedPolicy } from "../assets/embedded-policy.js";
import { trainCommand } from "../commands/train.js";
import { captureOutput } from "../testing/capture-output.js";
import { checkModel, type ModelReport } from "./check-model.js";
import { decodeCheck } from "./checks/decode.js";
import { gradientsCheck } from "./checks/gradients.js";
import { loadCheck } from "./checks/load.js";
import { templateCheck } from "./checks/template.js";
import type { Finding } from "./finding.js";
import { isNewModel, rememberModel } from "./known-models.js";
import type { ModelCheck } from "./model-check.js";
import { runHere } from "./run-check.js";
import { runInChild } from "./run-in-child.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const output = captureOutput();

/**
 * The built `cria check-model`, as users run it: `npm test` builds first. Each of its checks has a process, which takes five
 * times as long to load from sources.
 */
async function cria(...args: string[]): Promise<{ stdout: string; status: number | null }> {
  const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");
  const child = spawn(process.execPath, [bin, "check-model", ...args], { stdio: ["ignore", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  const [status] = (await once(child, "close")) as [number | null];
  return { stdout, status };
}

/** In this process, on one thread. */
async function check(path: string, checks?: readonly ModelCheck[]): Promise<ModelReport> {
  return checkModel({ path, devices: ["CPU"], threads: 1, run: runHere, checks });
}

const list = ({ devices }: ModelReport) => devices[0]!.findings;
const find = (findings: readonly Finding[], name: string) => findings.find((finding) => finding.name === name)!;
const verdicts = (report: ModelReport) => Object.fromEntries(list(report).map(({ name, verdict }) => [name, verdict]));

/** A check over a model whose methods `bend` partly replaces. */
async function runBent(
  { run }: ModelCheck,
  path: string,
  bend: (model: LlamaModel, options: Partial<LoadModelOptions>) => Partial<LlamaModel>,
): Promise<Finding[]> {
  return run({
    path,
    device: "cpu",
    gpu: null,
    threads: 1,
    lora: true,
    folder: models.folder,
    begin: () => undefined,
    advance: () => undefined,
    load: async (options) => {
      const model = await loadModel({ path, device: "cpu", threads: 1, ...options });
      const bent = bend(model, options) as Record<string | symbol, unknown>;
      return new Proxy(model, {
        get(target, key) {
          const value = bent[key] ?? (target as unknown as Record<string | symbol, unknown>)[key];
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  });
}

describe("cria check-model", () => {
  it("the embedded policy: every row is fine, except those that its types exclude", async () => {
    const { stdout, status } = await cria(embeddedPolicy, "--json", "--device", "cpu", "--threads", "1");
    const report = JSON.parse(stdout) as ModelReport;
    expect(list(report).filter(({ verdict }) => verdict !== "ok")).toEqual([]);
    expect(status).toBe(0);
    expect(Object.keys(verdicts(report))).toEqual([
      "generates",
      "trains an adapter",
      "trains all weights",
      "template, deltas",
      "template, ends of turns",
      "tool calls",
      "decoding and score agree",
      "alone and in a batch",
      "stop tokens stop",
      "one and more threads",
      "gradients, adapter",
      "gradients, all weights",
      "gradients, batch and alone",
      "greedy, beside stock",
      "speed of rollouts",
      "speed of a step",
      "memory",
    ]);
    expect(find(list(report), "tool calls").found).toMatch(/^hermes: calls of all types/);
  });

  it("a quantized file trains only an adapter, and the check measures the cost of rounding", async () => {
    const path = await models.write({ type: "q8_0", embedding: 64, feedForward: 64 });
    const report = await check(path, [loadCheck, gradientsCheck]);
    expect(verdicts(report)).toEqual({
      generates: "ok",
      "trains an adapter": "ok",
      "trains all weights": "not supported",
      "gradients, adapter": "ok",
      "gradients, all weights": "ok",
      "gradients, batch and alone": "ok",
      "gradients, rounding": "ok",
    });
    const { found } = find(list(report), "gradients, rounding");
    expect(Number(/by ([\d.]+) %/.exec(found)![1])).toBeGreaterThan(0.1);
  });

  // More blocks than the excerpt has, so that what the file lists for each block is cut.
  it.each(textArchitectures)("gradients of the first blocks of a %s", async (architecture) => {
    const path = await models.write({ architecture, layers: 4, embeddingScale: 0.25, seed: 6 });
    const findings = list(await check(path, [gradientsCheck]));
    expect(findings.filter(({ verdict }) => verdict !== "ok")).toEqual([]);
  });

  it("a damaged file is a row with the reason, and exit code 1", async () => {
    const path = join(models.folder, "damaged.gguf");
    writeFileSync(path, readFileSync(embeddedPolicy));
    truncateSync(path, 100_000);
    const { stdout, status } = await cria(path, "--json");
    const report = JSON.parse(stdout) as ModelReport;
    expect(report.ok).toBe(false);
    expect(report.devices[0]!.findings).toMatchObject([{ name: "generates", verdict: "falls short" }]);
    expect(status).toBe(1);
    const told = await cria(path, "--device", "cpu");
    expect(told.stdout).toMatch(/damaged\.gguf on CPU.*\nfalls short +generates +.*damaged\.gguf/);
  });

  it("a process that dies is a row", async () => {
    const dies: ModelCheck = { ...loadCheck, name: "no such check" };
    const job = { path: embeddedPolicy, device: "cpu", gpu: null, threads: 1, lora: true } as const;
    const events = { begin: () => undefined, advance: () => undefined };
    expect(await runInChild(dies, job, events)).toMatchObject([
      {
        name: "no such check",
        verdict: "falls short",
        found: expect.stringMatching(/ended: exit code 1: TypeError: /),
      },
    ]);
  });

  it.skipIf(missingModel)(`the published model (${missingModel ?? "is there"})`, async () => {
    const report = await check(realModel.path, [loadCheck, templateCheck, gradientsCheck]);
    expect(list(report).filter(({ verdict }) => verdict === "falls short")).toEqual([]);
    const rows = verdicts(report);
    expect(rows).toMatchObject({ "trains all weights": "not supported", "gradients, all weights": "ok" });
    expect(rows["tool calls"]).toBe("not supported");
  });
});

describe("each check can fail", () => {
  it("a gradient that is 5 % too long, in one kind of tensor", async () => {
    const path = await models.write({});
    const findings = await runBent(gradientsCheck, path, (model) => ({
      readTensor: async (name, part) => {
        const values = await model.readTensor(name, part);
        return part === "gradient" && name.includes("ffn_up") ? values.map((value) => 1.05 * value) : values;
      },
    }));
    for (const name of ["gradients, adapter", "gradients, all weights"]) {
      const { verdict, found } = find(findings, name);
      expect(verdict).toBe("falls short");
      expect(found).toMatch(/ffn_up/);
    }
  });

  it("a gradient that lacks a part across its own direction: the random move sees it", async () => {
    const path = await models.write({});
    const findings = await runBent(gradientsCheck, path, (model) => ({
      readTensor: async (name, part) => {
        const values = await model.readTensor(name, part);
        // Half of the rows are missing: along the rest the derivative is right.
        return part === "gradient" && name.includes("attn_k.weight")
          ? values.map((value, i) => (i < values.length / 2 ? 0 : value))
          : values;
      },
    }));
    expect(find(findings, "gradients, all weights")).toMatchObject({
      verdict: "falls short",
      found: expect.stringMatching(/attn_k\.weight, random/),
    });
  });

  it("gradients of sequences that share a micro-batch", async () => {
    const path = await models.write({});
    const findings = await runBent(gradientsCheck, path, (model) => ({
      train: (batch, loss, optimizer) => {
        const lossMask = Array.from(batch[0]!.lossMask).map((value, t) => (batch.length > 1 && t === 3 ? 0 : value));
        return model.train([{ ...batch[0]!, lossMask }, ...batch.slice(1)], loss, optimizer);
      },
    }));
    expect(find(findings, "gradients, batch and alone").verdict).toBe("falls short");
    const { found } = find(await runBent(gradientsCheck, path, () => ({})), "gradients, batch and alone");
    expect(Number(/^(\S+) %/.exec(found)![1])).toBeLessThan(0.01);
  });

  it("scores that are off, and bits that depend on the batch", async () => {
    const path = await models.write({});
    let sequences = 0;
    const findings = await runBent(decodeCheck, path, (model) => ({
      score: async (given) =>
        (await model.score(given)).map((result) => ({ ...result, logprobs: result.logprobs.map((x) => x + 1e-3) })),
      createSequence: () => {
        const sequence = model.createSequence();
        // The single ones, and the one with a stop token, sample with other seeds.
        const isLater = sequences++ >= 6;
        const generate = sequence.generate.bind(sequence);
        sequence.generate = (delta, options) =>
          generate(delta, isLater ? { ...options, seed: options.seed! + 1, stopTokens: [] } : options);
        return sequence;
      },
    }));
    expect(findings.map(({ name, verdict }) => [name, verdict])).toEqual([
      ["decoding and score agree", "falls short"],
      ["alone and in a batch", "falls short"],
      ["stop tokens stop", "falls short"],
      ["one and more threads", "falls short"],
    ]);
  });

  it("templates: one that counts messages, one that numbers them, one without an end, one that loses types, none", async () => {
    const write = async (name: string, template: string | null) => {
      const file = describeTinyModel({});
      const { "tokenizer.chat_template": _, ...metadata } = file.metadata;
      const path = join(models.folder, `${name}.gguf`);
      if (template !== null) metadata["tokenizer.chat_template"] = { type: "string", value: template };
      await writeGguf(path, { ...file, metadata });
      return list(await check(path, [templateCheck]));
    };
    const turn = (end: string) => `<|im_start|>{{ m.role }}\n{{ m.content }}${end}\n`;
    const whole = (body: string, before = "") =>
      `${before}{% for m in messages %}${body}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}`;
    const counts = await write("counts", whole(turn("<|im_end|>"), "{{ messages|length }} messages\n"));
    expect(find(counts, "template, deltas")).toMatchObject({
      verdict: "not supported",
      found: expect.stringMatching(/^0 of 8 .*; 8 that it refuses/),
    });
    const numbers = await write(
      "numbers",
      whole(turn(`{% if m.role == "user" %} {{ loop.index }}{% endif %}<|im_end|>`)),
    );
    expect(find(numbers, "template, deltas")).toMatchObject({
      verdict: "falls short",
      found: expect.stringMatching(/ otherwise \(plain: expected "/),
    });
    // As Qwen3's: the newest turn begins with a thought, which earlier turns lose.
    const rewrites = await write(
      "rewrites",
      whole(
        `<|im_start|>{{ m.role }}\n{% if m.role == "assistant" %}{% set said = m.content.split("</think>\n\n")[-1] %}{% if loop.last %}<think>\n\n</think>\n\n{% endif %}{{ said }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n`,
      ),
    );
    expect(find(rewrites, "template, deltas")).toMatchObject({
      verdict: "ok",
      found: expect.stringMatching(/whose earlier turns it rewrites/),
    });
    const endless = await write("endless", whole(turn("<END>")));
    expect(find(endless, "template, ends of turns").verdict).toBe("falls short");
    const call = `{% for c in m.tool_calls %}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson|replace("true", "false") }}}\n</tool_call>{% endfor %}`;
    const lossy = await write("lossy", whole(turn(`${call}<|im_end|>`)));
    expect(find(lossy, "tool calls")).toMatchObject({
      verdict: "falls short",
      found: expect.stringMatching(/^hermes: printed .*, read .*"isOpen":false/),
    });
    const granite = await models.write({
      chatTemplate: readBundledTemplate("ibm-granite-granite-3.3-2B-Instruct"),
      controlTokens: ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"],
    });
    expect(find(list(await check(granite, [templateCheck])), "tool calls")).toMatchObject({
      verdict: "not supported",
      found: expect.stringMatching(/^granite/),
    });
    const exact = `{% for c in m.tool_calls %}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}\n</tool_call>{% endfor %}`;
    const refuse = "{% if m.tool_calls and m.tool_calls|length > 1 %}{{ raise_exception('one call') }}{% endif %}";
    const single = await write("single", whole(turn(`${refuse}${exact}<|im_end|>`)));
    expect(find(single, "tool calls")).toMatchObject({ verdict: "ok", found: expect.stringMatching(/refuses two/) });
    // As gpt-oss's.
    const cut = await write(
      "cut",
      whole(
        turn(
          `${exact.replace("<tool_call>", "{% if loop.first %}<tool_call>").replace("{% endfor %}", "{% endif %}{% endfor %}")}<|im_end|>`,
        ),
      ),
    );
    expect(find(cut, "tool calls")).toMatchObject({ verdict: "ok", found: expect.stringMatching(/the first alone/) });
    const refusing = await write("refusing", whole(turn(`${refuse}${call}<|im_end|>`)));
    expect(find(refusing, "tool calls")).toMatchObject({ verdict: "falls short" });
    expect(await write("none", null)).toMatchObject([{ name: "template, deltas", verdict: "not supported" }]);
  });
});

describe("models that are new here", () => {
  it("are reported once, until the file changes; small and checked models are not", async () => {
    vi.stubEnv("XDG_CACHE_HOME", join(models.folder, "cache"));
    const path = join(models.folder, "large.gguf");
    const resize = (bytes: number) => {
      if (!existsSync(path)) writeFileSync(path, "");
      truncateSync(path, bytes);
    };
    resize(1000);
    expect(await isNewModel(path)).toBe(false);
    resize(40e6);
    expect([await isNewModel(path), await isNewModel(path)]).toEqual([true, false]);
    resize(41e6);
    await rememberModel(path);
    expect(await isNewModel(path)).toBe(false);
    resize(42e6);
    expect(await isNewModel(path)).toBe(true);
    vi.unstubAllEnvs();
  });

  it("a training points to the check, once", async () => {
    vi.stubEnv("XDG_CACHE_HOME", join(models.folder, "cache of a training"));
    const { folder } = await writeTinyRun(models);
    const path = join(folder, "padded.gguf");
    writeFileSync(path, readFileSync(embeddedPolicy));
    truncateSync(path, 40e6);
    const runs = join(folder, "runs");
    const train = () =>
      runCitty(trainCommand, {
        rawArgs: [
          join(folder, "config.yaml"),
          `actor_rollout_ref.model.path=${path}`,
          `trainer.default_local_dir=${runs}`,
          "trainer.total_training_steps=1",
          "--json",
        ],
      });
    await train();
    expect(output.stderr).toMatch(/cria check-model .*padded\.gguf/);
    output.stderr = "";
    await train();
    expect(output.stderr).not.toMatch(/check-model/);
    vi.unstubAllEnvs();
  });
});
