import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalBus } from "@cria/cluster";
import { ClusterError } from "@cria/core";
import { makeTinyModel } from "@cria/engine/testing";
import { loadConfig, type TrainingBus, trainConfigSchema } from "@cria/trainer";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { trainByCommand } from "./train-by-command.js";

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cria-run-training-"));
  await makeTinyModel(join(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
  const row = { data_source: "test", prompt: [{ role: "user", content: "a" }], reward_model: { ground_truth: "a" } };
  writeFileSync(join(folder, "rows.jsonl"), `${JSON.stringify(row)}\n`);
  writeFileSync(join(folder, "reward.mjs"), "export const computeScore = (source, text) => text.length;\n");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const lost = () =>
  new ClusterError("is lost", {
    code: "cluster/lease-lost",
    subject: "the lease",
    received: "it could not be renewed",
  });

/**
 * Trains two steps over a bus.
 * @returns how often it asked for the lead, and the SHA-256 of its adapter.
 */
async function trainOver(name: string, loseLead?: (bus: TrainingBus, lose: () => void) => Partial<TrainingBus>) {
  const bus = openLocalBus();
  let terms = 0;
  const leading: TrainingBus = {
    ...bus,
    lead: async (...given) => {
      const leadership = await bus.lead(...given);
      const loss = new AbortController();
      const isFirst = terms++ === 0;
      const changed = isFirst ? loseLead?.(bus, () => loss.abort(lost())) : undefined;
      Object.assign(leading, { findCheckpoint: bus.findCheckpoint, coordinate: bus.coordinate }, changed);
      return { signal: AbortSignal.any([leadership.signal, loss.signal]), release: () => leadership.release() };
    },
  };
  const config = {
    actor_rollout_ref: {
      model: { path: "model.gguf", lora_rank: 4 },
      actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 1, ppo_max_token_len: 128 },
      rollout: { n: 2, prompt_length: 48, response_length: 8, max_num_seqs: 8, seed: 1 },
    },
    data: { train_files: "rows.jsonl", train_batch_size: 1, max_prompt_length: 48, max_response_length: 8 },
    custom_reward_function: { path: "reward.mjs" },
    trainer: {
      threads: 1,
      total_training_steps: 2,
      default_local_dir: folder,
      logger: ["file"],
      project_name: "cria",
      experiment_name: name,
    },
    cluster: { share_checkpoints: true },
  };
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(config));
  const loaded = loadConfig(trainConfigSchema, file, []);
  const print = vi.spyOn(console, "log").mockImplementation(() => undefined);
  const write = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
  try {
    await trainByCommand(loaded, { json: true, signal: new AbortController().signal, words: null, bus: leading });
    const adapter = readFileSync(join(folder, "cria", name, "adapter.gguf"));
    return { terms, sha: createHash("sha256").update(adapter).digest("hex") };
  } finally {
    print.mockRestore();
    write.mockRestore();
    await bus.close();
  }
}

describe("a training that loses the lead of the bus", () => {
  let plain: string;
  beforeAll(async () => {
    plain = (await trainOver("plain")).sha;
  });

  const losses: [string, (bus: TrainingBus, lose: () => void) => Partial<TrainingBus>][] = [
    [
      "before it reads the newest checkpoint",
      (_, lose) => ({
        findCheckpoint: async () => {
          lose();
          throw lost();
        },
      }),
    ],
    [
      "while it opens",
      (bus, lose) => ({
        coordinate: async (run) => {
          lose();
          run.signal!.throwIfAborted();
          return bus.coordinate(run);
        },
      }),
    ],
    [
      "while it opens, and what it does fails for that reason",
      (_, lose) => ({
        coordinate: async () => {
          lose();
          throw new Error("the policy was replaced");
        },
      }),
    ],
    [
      "in the middle of a step",
      (bus, lose) => ({
        coordinate: async (run) => ({
          ...(await bus.coordinate(run)),
          converseBy: async () => async () => {
            lose();
            throw lost();
          },
        }),
      }),
    ],
  ];
  it.each(losses)("%s stands by, and goes on", async (name, lose) => {
    const given = await trainOver(`lost-${losses.findIndex(([each]) => each === name)}`, lose);
    expect(given).toEqual({ terms: 2, sha: plain });
  });
});
