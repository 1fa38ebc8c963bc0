import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LoadedImage } from "@cria/core";
import { drawPicture, makeTinyModel, makeTinyProjector, visionPairs } from "@cria/engine/testing";
import { type RunEvent, type TrainingBus, train } from "@cria/trainer";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { Blobs, JobBus, JobContext, JobKindName } from "../bus/job-bus.js";
import { hashBytes } from "../bus/job-record.js";
import { openBus } from "../bus/open-bus.js";
import { CoordinatorImages } from "../images/coordinator-images.js";
import type { JobPayload, JobValue } from "../jobs/job-kinds.js";
import { receive, send } from "../jobs/packed.js";
import { connectLocally, LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { openNatsBus } from "../nats/open-nats-bus.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { startWorker } from "../worker/start-worker.js";

/**
 * A random policy with a random projector. All its turns are calls of the zoom tool, whose answer is another picture:
 * of the prompt's image, or of one that the row names by path.
 */
const STEPS = 2;
const pictures = { "a.bmp": drawPicture(32, 32), "b.bmp": drawPicture(48, 32), "c.bmp": drawPicture(40, 40) };
let root: string;
/** The coordinator's folder, and a worker's copy: only code. */
let folder: string;
let copy: string;
let plain: string;
let events: RunEvent[] = [];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "cria-cluster-images-"));
  vi.stubEnv("XDG_CACHE_HOME", join(root, "cache"));
  folder = join(root, "mine");
  copy = join(root, "theirs");
  mkdirSync(folder);
  // The family with most state to keep equal: positions of rows and columns, and vectors for several layers.
  const { model, projector } = visionPairs.find(({ name }) => name === "Qwen3-VL")!;
  await makeTinyModel(join(folder, "model.gguf"), { ...model, seed: 5, embeddingScale: 0.25 });
  await makeTinyProjector(join(folder, "mmproj.gguf"), projector);
  for (const [name, file] of Object.entries(pictures)) writeFileSync(join(folder, name), file);
  const zooms = (image: unknown) => ({ image_zoom_in_tool: { create_kwargs: { image } } });
  const rows = [
    { content: "<image>?", images: ["a.bmp"] },
    // The template lists no tools.
    { content: "<image>a<image> image_zoom_in_tool", images: ["b.bmp", "a.bmp"], zooms: zooms("c.bmp") },
  ].map(({ content, images, zooms }, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    images,
    extra_info: { index, need_tools_kwargs: true, tools_kwargs: zooms ?? {} },
  }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const tools = [{ class_name: "@cria/tools#ImageZoomTool", config: { min_size: 4 } }];
  writeFileSync(join(folder, "tools.yaml"), JSON.stringify({ tools }));
  writeFileSync(
    join(folder, "code.mjs"),
    `export const computeScore = (source, text) => [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, text.length);
    export const parse = (text) => {
      const side = 8 + 4 * (text.length % 5);
      return { content: text, calls: [{ name: "image_zoom_in_tool", arguments: { bbox_2d: [0, 0, side, side] } }] };
    };\n`,
  );
  writeFileSync(join(folder, "agents.yaml"), "- name: mine\n  agent: ./agent.mjs#agent\n");
  // Looks at the row's pictures, and goes on in two ways; one shows a picture again.
  writeFileSync(
    join(folder, "agent.mjs"),
    `export async function agent({ row, session }) {
      const asked = [...row.prompt];
      const { message } = await session.complete({ messages: asked, maxTokens: 4 });
      const image = asked.at(-1).content.find(({ type }) => type === "image");
      for (const content of ["x", [image, { type: "text", text: "y" }]])
        await session.complete({ messages: [...asked, message, { role: "user", content }], maxTokens: 4 });
    }\n`,
  );
  cpSync(folder, copy, { recursive: true, filter: (path) => !/\.(bmp|gguf|jsonl)$/.test(path) });
  plain = (await trainIt("plain")).sha;
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});
beforeEach(() => {
  events = [];
});

async function trainIt(
  name: string,
  { bus, agent, ...cluster }: { bus?: TrainingBus; agent?: object; [key: string]: unknown } = {},
) {
  events = [];
  const result = await train({
    config: {
      actor_rollout_ref: {
        model: { path: "model.gguf", mmproj: "mmproj.gguf", lora_rank: 4 },
        actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 1, ppo_max_token_len: 700 },
        rollout: {
          ...{ n: 4, prompt_length: 300, response_length: 200, max_tokens_per_turn: 4, max_num_seqs: 8, seed: 1 },
          ...(agent
            ? { agent }
            : {
                multi_turn: {
                  enable: true,
                  max_assistant_turns: 2,
                  tool_config_path: "tools.yaml",
                  format: "./code.mjs#parse",
                },
              }),
        },
      },
      data: { train_files: "rows.jsonl", train_batch_size: 2, max_prompt_length: 300, max_response_length: 200 },
      custom_reward_function: { path: "code.mjs" },
      trainer: { threads: 1, total_training_steps: STEPS, default_local_dir: join(root, "runs") },
      cluster: { audit: 0, take_part: false, ...cluster },
    },
    configFolder: folder,
    name,
    report: (event) => events.push(event),
    ...(bus ? { bus } : {}),
  });
  const metrics: Record<string, number>[] = events.flatMap((event) => (event.type === "step" ? [event.metrics] : []));
  const sum = (metric: string) => metrics.reduce((total, line) => total + (line[metric] ?? 0), 0);
  const sha = createHash("sha256").update(readFileSync(result.adapter!)).digest("hex");
  const warnings = events.flatMap((event) => (event.type === "warning" ? [event.text] : []));
  return { sha, result, sum, warnings };
}

interface Member {
  id: string;
  worker: ReturnType<typeof startWorker>;
  /** SHA-256 of the blobs that it fetched. */
  fetched: string[];
}

/** Coordinator and workers in this process, as machines on one bus. */
async function withWorkers<T>(
  changes: Record<string, (bus: JobBus, kill: () => void) => JobBus>,
  work: (bus: ReturnType<typeof openLocalBus>, members: readonly Member[]) => Promise<T>,
): Promise<T> {
  const hub = new LocalHub({ ackWaitMs: 1000, presenceMs: 1000 });
  const coordinator = openLocalBus({ hub });
  const members = Object.entries(changes).map(([id, change]): Member => {
    const store = connectLocally(hub);
    const fetched: string[] = [];
    const blobs: Blobs = {
      put: (bytes) => store.blobs.put(bytes),
      get: (sha) => {
        fetched.push(sha);
        return store.blobs.get(sha);
      },
      has: (sha) => store.blobs.has(sha),
      delete: (sha) => store.blobs.delete(sha),
    };
    const bus = change(openBus({ ...store, blobs }), () => void store.close());
    return { id, fetched, worker: start(bus, id) };
  });
  try {
    return await work(coordinator, members);
  } finally {
    await Promise.all(members.map(async ({ worker }) => (await worker).close()));
    await coordinator.close();
  }
}

const start = (bus: JobBus, id: string) =>
  // Few at once, so that each worker gets some.
  startWorker(bus, { id, folder: copy, threads: 1, slots: 2, modelDir: join(root, `models-${id}`) });
const asItIs = (bus: JobBus) => bus;

/** A worker that does its jobs of a kind in another way. */
const changeJobs =
  (kind: JobKindName, change: (run: () => Promise<Outcome>, bus: JobBus) => Promise<Outcome>) =>
  (bus: JobBus): JobBus => ({
    ...bus,
    work: (options) =>
      bus.work({
        ...options,
        jobs: options.jobs.map((handler) => ({
          ...handler,
          run: (payload: JobPayload, context: JobContext) =>
            handler.kind.name === kind
              ? change(() => handler.run(payload, context) as Promise<Outcome>, bus)
              : handler.run(payload, context),
        })),
      }),
  });
type Outcome = { value: JobValue; meta?: unknown };

/** Number of fetches of each picture of the rows. */
const countFetched = ({ fetched }: Member) =>
  Object.values(pictures).map((file) => fetched.filter((sha) => sha === hashBytes(file)).length);

describe("a training with images over a bus", () => {
  it("trains the adapter of one machine, bit for bit; its worker fetches each image once", async () => {
    await withWorkers({ one: asItIs }, async (bus, [one]) => {
      const { sha, sum, warnings, result } = await trainIt("one", { bus, audit: 1, wait_for_workers: 1 });
      expect(warnings).toEqual([]);
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_here")).toBe(0);
      expect(sum("cluster/audits_failed")).toBe(0);
      expect(sum("cluster/audits")).toBe(sum("cluster/jobs_elsewhere"));
      expect(countFetched(one!)).toEqual([1, 1, 1]);
      // The worker sent the tools' pictures.
      const crops = readdirSync(join(result.folder, "rollouts", "images")).filter((name) => name.endsWith(".png"));
      expect(crops.length).toBeGreaterThan(1);
      const own = Object.values(pictures).reduce((bytes, file) => bytes + file.length, 0);
      expect(sum("cluster/image_bytes")).toBeGreaterThan(own);
      expect(sum("cluster/image_bytes")).toBeLessThan(2 * own);
      expect((await one!.worker).status.lacks).toEqual([]);
    });
  });

  it("trains the adapter of one machine by an agent whose conversations branch, and audits find nothing", async () => {
    const agent = { default_agent_loop: "mine", agent_loop_config_path: "agents.yaml" };
    const alone = await trainIt("agent-alone", { agent });
    expect(alone.sha).not.toBe(plain);
    expect(alone.sum("rollout/failed")).toBe(0);
    // One picture of the first row and two of the second, and one of them again.
    expect(alone.sum("images/shown/mean")).toBe(STEPS * 2.5);
    const [line] = readFileSync(join(alone.result.folder, "rollouts", "1.jsonl"), "utf8").split("\n");
    const segments: { parent: number }[] = JSON.parse(line!).segments;
    expect(segments.map(({ parent }) => parent)).toEqual([-1, 0, 0]);
    await withWorkers({ one: asItIs, two: asItIs }, async (bus, members) => {
      const { sha, sum, warnings } = await trainIt("agent", { bus, agent, audit: 1, wait_for_workers: 2 });
      expect(warnings).toEqual([]);
      expect(sha).toBe(alone.sha);
      expect(sum("cluster/audits")).toBe(sum("cluster/jobs_elsewhere"));
      expect(sum("cluster/audits")).toBeGreaterThan(STEPS * 8);
      expect(sum("cluster/audits_failed") + sum("cluster/audits_open")).toBe(0);
      expect(members.flatMap(countFetched).some((count) => count > 0)).toBe(true);
    });
  });

  it("trains it with three workers, of which one dies in the middle of a conversation", async () => {
    let begun = 0;
    const die = (bus: JobBus, kill: () => void) =>
      changeJobs("rollout", async (run) => {
        const running = run();
        if (++begun === 2) kill();
        return running;
      })(bus);
    await withWorkers({ one: asItIs, two: asItIs, doomed: die }, async (bus, members) => {
      const { sha, sum } = await trainIt("three", { bus, take_part: true, wait_for_workers: 3 });
      expect(begun).toBeGreaterThan(1);
      expect(sha).toBe(plain);
      expect(sum("cluster/redelivered")).toBeGreaterThan(0);
      for (const member of members) expect(Math.max(...countFetched(member))).toBeLessThan(2);
    });
  });

  it("refuses a result with images at other places, and asks again", async () => {
    const lies = [
      (images: Sent[]) => images.map(({ start, ...rest }) => ({ ...rest, start: start + 1 })),
      (images: Sent[]) => images.map(({ length, ...rest }) => ({ ...rest, length: length + 10_000 })),
      () => [],
    ];
    const lie = changeJobs("rollout", async (run, bus) => {
      const { value, meta } = await run();
      const found = new CoordinatorImages(bus.blobs, {});
      const result = (await receive(bus, value.result, z.unknown(), "own result", found)) as { images: Sent[] };
      const change = lies.shift();
      if (!change) return { value, meta };
      return { value: { result: await send(bus, { ...result, images: change(result.images) }, found) }, meta };
    });
    await withWorkers({ one: lie }, async (bus) => {
      const { sha, warnings, sum } = await trainIt("lied-to", { bus, wait_for_workers: 1 });
      expect(lies).toEqual([]);
      expect(warnings.join("\n")).toContain("worker one sent an unusable result");
      expect(sha).toBe(plain);
      expect(sum("cluster/abandoned")).toBe(0);
    });
  });
});

type Sent = { image: LoadedImage; start: number; length: number };

describeWithNats("a training with images over a nats-server", () => {
  const server = new NatsServer();
  afterAll(() => server.dispose());

  it("has the same bits", async () => {
    await server.start();
    const open = (role: "coordinator" | "worker") =>
      openNatsBus({ servers: server.url, role, prefix: "images", bounds });
    const bus = await open("coordinator");
    const other = await open("worker");
    const worker = await start(other, "over-nats");
    const { sha, sum, warnings } = await trainIt("nats", { bus, wait_for_workers: 1 });
    await worker.close();
    await Promise.all([bus.close(), other.close()]);
    expect(warnings).toEqual([]);
    expect(sum("cluster/jobs_here")).toBe(0);
    expect(sha).toBe(plain);
  });
});
