import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type GradientShard, type LoadedImage, loadImage, type ScoreShard } from "@cria/core";
import { drawPicture, makeTinyProjector, TinyModels, visionPairs } from "@cria/engine/testing";
import { openTraining, type Training } from "@cria/trainer";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { openRun } from "../coordinator/open-run.js";
import { CoordinatorImages } from "../images/coordinator-images.js";
import { rolloutJob, scoreJob } from "../jobs/job-kinds.js";
import { pack } from "../jobs/pack.js";
import { receive, send } from "../jobs/packed.js";
import { readScores } from "../jobs/results.js";
import type { RunDescription } from "../jobs/run-description.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { makeRandom, mutate } from "../testing/nonsense.js";
import { type RunningWorker, startWorker } from "./start-worker.js";

const models = new TinyModels();
let training: Training;
let folder: string;
let scoring: ScoreShard;
let hub: LocalHub;
let bus: JobBus;
let images: CoordinatorImages;
let payload: { run: string; weights: string; version: number };
let description: RunDescription;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  vi.stubEnv("XDG_CACHE_HOME", join(models.folder, "cache"));
  const mmproj = join(models.folder, "mmproj.gguf");
  const { model, projector } = visionPairs.find(({ name }) => name === "Pixtral")!;
  await makeTinyProjector(mmproj, projector);
  const row = {
    prompt: [{ role: "user", content: "<image>?" }],
    images: [{ data: Buffer.from(drawPicture(32, 32)).toString("base64"), mimeType: "image/bmp" }],
  };
  const run = await writeTinyRun(models, { row, rollout: { max_model_len: 128 } });
  folder = run.folder;
  // Otherwise a picture of 32 x 32 pixels has 19 vectors.
  Object.assign(run.config.actor_rollout_ref.model, { path: await models.write(model), mmproj, image_max_tokens: 9 });
  run.config.data.image_max_pixels = 2000;
  training = await openTraining(run.config, folder);
  scoring = await planScores();
});
afterAll(async () => {
  await training?.dispose();
  await models.cleanUp();
  vi.unstubAllEnvs();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  vi.unstubAllEnvs();
  vi.stubEnv("XDG_CACHE_HOME", join(models.folder, "cache"));
});

/** A micro-batch with two pictures. */
async function planScores(): Promise<ScoreShard> {
  const { engine } = training.policy;
  const place = async (side: number) => [
    ...engine.images!.place(await loadImage({ bytes: drawPicture(side, 32) })).tokenIds,
  ];
  let found: ScoreShard | undefined;
  const sequences = [{ tokenIds: [5, ...(await place(32)), 6, ...(await place(40)), 7, 8] }];
  await engine.score(sequences, {
    compute: (shard, here) => {
      found = shard;
      return here();
    },
  });
  return found!;
}

/** Begins a training on a new bus. */
async function begin(change: Partial<RunDescription> = {}): Promise<void> {
  hub = new LocalHub();
  bus = openLocalBus({ hub });
  closing.push(() => bus.close());
  images = new CoordinatorImages(bus.blobs, {});
  const opened = await openRun(bus, { ...training, configFolder: folder });
  description = { ...opened.description, ...change };
  const run = await bus.blobs.put(pack(description));
  payload = { run, version: 0, weights: description.weights };
  await bus.publishPolicy(payload);
}

async function startOne(): Promise<RunningWorker> {
  const own = openLocalBus({ hub });
  const worker = await startWorker(own, { id: "w1", threads: 1, device: "cpu", modelDir: models.folder, folder });
  closing.unshift(
    () => worker.close(),
    () => own.close(),
  );
  await vi.waitFor(() => expect(worker.status.state).toBe("working"), { timeout: 10_000, interval: 20 });
  return worker;
}

async function submit(kind: typeof scoreJob, work: unknown, avoid: string[] = []): Promise<unknown> {
  const rest = { class: null, avoid, losses: 0 };
  const { value } = await bus.submit(kind, { ...payload, ...rest, work: await send(bus, work, images) });
  return receive(bus, value.result, z.unknown(), "a result", images);
}

/** A conversation over one image. */
function makeConversation(image: unknown, more: object = {}) {
  const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null, seed: 1 };
  const { folder: _, ...row } = training.trainRows[0]!;
  const prompt = [{ role: "user", content: [{ type: "image", image }] }];
  return { row: { ...row, prompt, ...more }, sample: 0, step: 1, policyVersion: 1, sampling };
}

let others = 0;
/** A job that succeeds and equals no other one: after some failures in a row a worker would pause. */
const doOther = (kind: typeof scoreJob) => {
  const work = kind === scoreJob ? scoring : makeConversation(scoring.images![0]!.image);
  return submit(kind, work, [`other-${others++}`]);
};

async function reason(work: unknown, kind = scoreJob): Promise<string> {
  const said = await submit(kind, work).then(
    () => "done",
    (error) => error.received as string,
  );
  await doOther(kind);
  return said;
}

describe("a worker of a training with images", () => {
  it("scores sequences with images, to the bits of the coordinator", async () => {
    await begin();
    const worker = await startOne();
    expect(worker.status.lacks).toEqual([]);
    expect(worker.status.class).toBe(description.class);
    expect(description.projector).toMatchObject({
      name: "mmproj.gguf",
      sha256: training.policy.engine.images!.info.hash,
    });
    expect(scoring.images).toMatchObject([{ count: 11 }, { count: 7 }]);
    const scores = readScores(await submit(scoreJob, scoring), scoring);
    expect(scores).toEqual(await training.policy.engine.computeScores!(scoring));
  });

  it("refuses images that are damaged or beyond the limits, and places that are wrong, and goes on", async () => {
    await begin();
    await startOne();
    const [first, second] = scoring.images!;
    const show = (...shown: NonNullable<GradientShard["images"]>) => ({ ...scoring, images: shown });
    const large = await loadImage({ bytes: drawPicture(64, 64) });
    expect(await reason(show({ ...first!, image: large }, second!))).toMatch(/is refused[\s\S]*at most 2000.*64 x 64/);
    expect(await reason(show({ ...first!, count: 3 }, second!))).toMatch(/gaps between its images' ids/);
    expect(await reason(show(first!, { ...second!, count: 3 }))).toMatch(/another number of vectors/);
    expect(await reason(show(first!))).toMatch(/a token outside the vocabulary/);
    expect(await reason({ ...scoring, images: undefined })).toMatch(/a token outside the vocabulary/);
    expect(await reason(show({ ...first!, image: "0".repeat(64) as unknown as LoadedImage }))).toMatch(
      /an image that is loaded/,
    );
    expect(await reason({ ...scoring, images: 7 })).toMatch(/images/);
    const tokens = scoring.tokens.map((id, t) => (t === 2 ? 2 ** 30 : id));
    expect(await reason({ ...scoring, tokens })).toMatch(/a token outside the vocabulary/);
    // Another file arrives instead.
    const fresh = await loadImage({ bytes: drawPicture(32, 20) });
    await images.put(fresh);
    hub.blobs.entries.set(fresh.hash, drawPicture(32, 21));
    expect(await reason(show({ ...first!, image: fresh }, second!))).toMatch(/blob .* is damaged/);
    expect(await reason(scoring)).toBe("done");
  });

  it("follows no path of a row, and refuses an image that is not loaded", async () => {
    await begin();
    await startOne();
    const { image } = scoring.images![0]!;
    writeFileSync(join(folder, "a.bmp"), drawPicture(32, 32));
    expect(await reason(makeConversation({ path: "a.bmp" }), rolloutJob)).toMatch(
      /an image that is loaded[\s\S]*prompt\[0\]\.content\[0\]\.image/,
    );
    expect(await reason(makeConversation(image, { folder }), rolloutJob)).toMatch(/"folder"/);
    expect(await reason(makeConversation(image, { files: { "a.bmp": { path: "a.bmp" } } }), rolloutJob)).toMatch(
      /an image that is loaded/,
    );
    expect(await reason(makeConversation(image), rolloutJob)).toBe("done");
  });

  it("survives malformed images", async () => {
    await begin();
    const worker = await startOne();
    const random = makeRandom(14);
    const works = [
      [scoreJob, { ...scoring, targets: scoring.targets.slice(0, 1), sources: scoring.sources.slice(0, 1) }],
      [rolloutJob, makeConversation(scoring.images![0]!.image)],
    ] as const;
    const outcomes: string[] = [];
    for (let round = 0; round < 5; round++) {
      const some = Array.from({ length: 8 }, (_, i) => {
        const [kind, work] = works[i % 2]!;
        const { images: shown } = work as { images?: unknown };
        // Most changes are to the images.
        const changed = shown && random() < 0.8 ? { ...work, images: mutate(shown, random) } : mutate(work, random);
        return submit(kind, changed).then(
          () => "done",
          (error) => error.code as string,
        );
      });
      outcomes.push(...(await Promise.all(some)));
      for (const [kind] of works) await doOther(kind);
    }
    expect(new Set(outcomes)).toEqual(new Set(["done", "cluster/given-up"]));
    expect(worker.status.state).toBe("working");
    expect(await reason(scoring)).toBe("done");
  });

  it("without the library for images names the package to install", async () => {
    await begin();
    vi.stubEnv("CRIA_VISION", join(models.folder, "none.so"));
    const worker = await startOne();
    expect(worker.status.kinds).toEqual([]);
    expect(worker.status.lacks).toEqual([
      expect.stringMatching(
        /^has no model: this worker: cannot see the images of this training; .*libcria-vision\.so; .*npm install @cria\/vision-/,
      ),
    ]);
  });

  it("without the projector names it, and never opens the path of the config", async () => {
    await begin();
    const projector = { ...description.projector!, sha256: "f".repeat(64) };
    await begin({ projector });
    const worker = await startOne();
    expect(worker.status.lacks[0]).toMatch(/^has no model: the projector mmproj\.gguf: was not found/);
    // Described as reading only text: the config's path is the coordinator's.
    for (const close of closing.splice(0)) await close();
    await begin({ projector: null });
    const blind = await startOne();
    expect(blind.status.class).not.toBe(description.class);
    expect(blind.status.kinds).toEqual(["rollout"]);
  });
});
