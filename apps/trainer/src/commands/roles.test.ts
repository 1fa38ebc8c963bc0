import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { findTrained } from "../export/find-trained.js";
import { openServed } from "../serve/open-served.js";
import { findSubject } from "../subject/find-subject.js";
import { captureOutput } from "../testing/capture-output.js";
import { runHere } from "../testing/run-here.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const output = captureOutput();
const hashSync = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");
const say = (text: string) => {
  throw new Error(text);
};
const fetch = (address: string) => Promise.resolve(address);

/** A game of two roles, which a config names. */
const game = `export async function play({ row, session }) {
  const said = {};
  for (const role of ["x", "o"]) {
    const messages = [{ role: "user", content: role + " " + row.prompt[0].content }];
    said[role] = (await session.complete({ messages, maxTokens: 4, role })).message.content;
  }
  return { rewards: { x: said.x.length % 3, o: said.o.length % 2 } };
}
`;

let folder: string;
let path: string;
let metrics: Record<string, number>;
/** Trains the run, once for all tests. */
async function trainOnce(): Promise<void> {
  if (folder) return;
  ({ folder } = await writeTinyRun(models, {
    model: { lora_roles: ["x", "o"] },
    algorithm: { adv_estimator: "rae" },
    rollout: {
      response_length: 64,
      agent: { default_agent_loop: "game", agent_loop_config_path: "game.yaml" },
      val_kwargs: { do_sample: true },
    },
    data: { max_response_length: 64, val_files: "rows.jsonl" },
    customRewardFunction: { path: null },
    trainer: { total_training_steps: 2, save_freq: 1 },
  }));
  writeFileSync(join(folder, "game.mjs"), game);
  writeFileSync(join(folder, "game.yaml"), "- { name: game, agent: ./game.mjs#play }\n");
  path = join(folder, "cria", "default");
  ({ metrics } = await run("train", "config.yaml", "--json"));
}
beforeEach(trainOnce);

async function run<T = Record<string, unknown>>(...words: string[]): Promise<T> {
  output.stdout = "";
  process.exitCode = 0;
  await runHere(folder, words);
  if (process.exitCode) throw new Error(output.stderr);
  return JSON.parse(output.stdout) as T;
}

/** The logprobs of a role's first turns in an evaluation. */
async function evaluate(role: "x" | "o", ...words: string[]) {
  const out = join(folder, "eval.jsonl");
  const result = await run<{ metrics: Record<string, number> }>(
    "eval",
    "config.yaml",
    "--json",
    "--out",
    out,
    ...words,
  );
  const lines = readFileSync(out, "utf8").trim().split("\n");
  const logprobs = lines.map((text) => {
    const { turns, rollout_logprobs } = JSON.parse(text);
    const turn = turns.find(({ call }: { call?: { request: { role: string } } }) => call?.request.role === role);
    return rollout_logprobs.slice(turn.start, turn.end) as number[];
  });
  return { ...result, logprobs };
}

describe("a run with an adapter for each role", () => {
  it("exports the adapter of a role, from a checkpoint and from the run's files", async () => {
    const of = (role: string) => join(path, `adapter_${role}.gguf`);
    expect(hashSync(of("x"))).not.toBe(hashSync(of("o")));
    const adapter = join(folder, "exported.gguf");
    for (const role of ["x", "o"]) {
      const result = await run("export", "--run", path, "--role", role, "--adapter", adapter, "--json");
      expect(result).toMatchObject({ step: 2 });
      expect(hashSync(adapter), role).toBe(hashSync(of(role)));
    }
    for (const role of [undefined, "y"])
      await expect(findTrained(path, null, say, { role })).rejects.toMatchObject({ code: "config/bad-argument" });
    const { weights } = await findTrained(path, null, say, { role: "o" });
    expect(weights).toBe(of("o"));
  });

  it("is evaluated with each role's adapter, or with one for all", async () => {
    const own = await evaluate("o", "--checkpoint", path);
    for (const [name, value] of Object.entries(own.metrics)) expect(metrics[name], name).toBe(value);
    const asX = await evaluate("o", "--checkpoint", path, "--role", "x");
    const asO = await evaluate("o", "--checkpoint", path, "--role", "o");
    const byFile = await evaluate("o", "--adapter", join(path, "adapter_x.gguf"));
    expect(asO.logprobs).toEqual(own.logprobs);
    expect(asX.logprobs).not.toEqual(own.logprobs);
    expect(byFile.logprobs.flat().length).toBeGreaterThan(0);
    await expect(run("eval", "config.yaml", "--role", "x")).rejects.toThrow(/--role/);
  });

  it("is chatted with and served as a role", async () => {
    const loaded = join(folder, "loaded.gguf");
    const subject = await findSubject({ target: path, role: "o", say, fetch });
    const model = await subject.load({ contextSize: 64, maxSequences: 1, threads: 1 });
    await model.saveAdapter(loaded);
    await model.dispose();
    expect(hashSync(loaded)).toBe(hashSync(join(path, "adapter_o.gguf")));
    const of = async (role: string) => {
      const deterministic = true;
      const served = await openServed({ target: path, role, say, fetch, deterministic, threads: 1, onWarning: say });
      await served.take((await findTrained(path, null, say, { role })).checkpoint!);
      await served.engine.saveAdapter(loaded);
      await served.engine.dispose();
      return { fingerprint: served.model.fingerprint, sha: hashSync(loaded) };
    };
    const [x, o] = [await of("x"), await of("o")];
    expect(x.sha).toBe(hashSync(join(path, "adapter_x.gguf")));
    expect(o.sha).toBe(hashSync(join(path, "adapter_o.gguf")));
    expect(x.fingerprint).not.toBe(o.fingerprint);
    await expect(findSubject({ target: path, say, fetch })).rejects.toMatchObject({ code: "config/bad-argument" });
    // An adapter's own file names its model by the run beside it.
    const byFile = await findSubject({ target: join(path, "adapter_x.gguf"), say, fetch });
    expect(byFile.weights).toBe(join(path, "adapter_x.gguf"));
  });

  it("without checkpoints gives the files of its adapters", async () => {
    rmSync(join(path, "checkpoints"), { recursive: true });
    const adapter = join(folder, "copied.gguf");
    await run("export", "--run", path, "--role", "x", "--adapter", adapter, "--json");
    expect(hashSync(adapter)).toBe(hashSync(join(path, "adapter_x.gguf")));
  });
});
