import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ImageLimits, type LoadedImage, loadImage } from "@cria/core";
import { fakeImageFile } from "@cria/core/testing";
import type { ConversationWork } from "@cria/rollout";
import { afterAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { makePortable } from "../coordinator/portable-work.js";
import { pack, unpack } from "../jobs/pack.js";
import { receive, send } from "../jobs/packed.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { CoordinatorImages } from "./coordinator-images.js";
import { WorkerImages } from "./worker-images.js";

const buses: JobBus[] = [];
afterAll(() => Promise.all(buses.map((bus) => bus.close())));

const image = (content: number) => loadImage({ bytes: fakeImageFile(32, 16, content) });
const [cat, dog] = await Promise.all([image(1), image(2)]);
const anything = z.unknown();

function openImages(limits: ImageLimits = {}, kept = { bytes: 1000, milliseconds: 1000 }) {
  const hub = new LocalHub();
  const bus = openLocalBus({ hub });
  buses.push(bus);
  let time = 0;
  const coordinator = new CoordinatorImages(bus.blobs, limits, kept, () => time);
  const worker = new WorkerImages(bus.blobs, limits);
  const wait = (milliseconds: number) => {
    time += milliseconds;
  };
  return { hub, bus, coordinator, worker, wait, put: vi.spyOn(bus.blobs, "put"), get: vi.spyOn(bus.blobs, "get") };
}
const has = (hub: LocalHub, ...images: LoadedImage[]) => images.map(({ hash }) => hub.blobs.entries.has(hash));

describe("images of messages", () => {
  it("are named by their hash, and travel once, however often they are shown", async () => {
    const { bus, coordinator, worker, put, get } = openImages();
    const value = { a: cat, b: [dog, cat, { c: structuredClone({ ...cat }) }] };
    const packed = await send(bus, value, coordinator);
    await send(bus, [cat, dog], coordinator);
    expect(put).toHaveBeenCalledTimes(2);
    expect(pack(value, () => {}).byteLength).toBeLessThan(200);
    expect(await receive(bus, packed, anything, "x", worker.ofJob())).toEqual(
      unpack(
        pack(value, () => {}),
        find,
      ),
    );
    expect(await receive(bus, packed, anything, "x", worker.ofJob())).toMatchObject({ a: { width: 32, height: 16 } });
    expect(get).toHaveBeenCalledTimes(2);
    expect(coordinator.bytes).toBe(cat.bytes.length + dog.bytes.length);
  });

  it("come back from a worker only where the job did not bring them", async () => {
    const { bus, coordinator, worker, put, get } = openImages();
    const job = worker.ofJob();
    await receive(bus, await send(bus, cat, coordinator), anything, "x", job);
    put.mockClear();
    get.mockClear();
    const result = await send(bus, [cat, dog], job);
    expect(put).toHaveBeenCalledTimes(1);
    const [first, second] = (await receive(bus, result, anything, "x", coordinator)) as LoadedImage[];
    expect(first).toBe(cat);
    expect(second).toEqual(dog);
    expect(get).toHaveBeenCalledTimes(1);
    // The coordinator may have deleted it since.
    await send(bus, dog, worker.ofJob());
    expect(put).toHaveBeenCalledTimes(2);
  });

  it("leave the bus if there are too many, after an hour, and at the end", async () => {
    const { hub, coordinator, wait, put } = openImages({}, { bytes: cat.bytes.length, milliseconds: 1000 });
    await coordinator.put(cat);
    await coordinator.put(dog);
    // Not while jobs may show them.
    expect(has(hub, cat, dog)).toEqual([true, true]);
    await coordinator.forget();
    expect(has(hub, cat, dog)).toEqual([false, true]);
    wait(1001);
    await coordinator.forget();
    expect(has(hub, cat, dog)).toEqual([false, false]);
    await coordinator.put(dog);
    expect(put).toHaveBeenCalledTimes(3);
    await coordinator.close();
    expect(has(hub, dog)).toEqual([false]);
  });

  it("stay as long as a job that shows them is given out", async () => {
    const { hub, bus, coordinator, wait } = openImages();
    const [one, other] = [coordinator.ofJob(), coordinator.ofJob()];
    await send(bus, [cat, dog, cat], one);
    await send(bus, [dog], other);
    wait(1001);
    await coordinator.forget();
    expect(has(hub, cat, dog)).toEqual([true, true]);
    one.release();
    await coordinator.forget();
    expect(has(hub, cat, dog)).toEqual([false, true]);
    other.release();
    await coordinator.forget();
    expect(has(hub, cat, dog)).toEqual([false, false]);
  });

  it("are fetched again if there was no room for them", async () => {
    const { bus, coordinator, get } = openImages();
    const small = new WorkerImages(bus.blobs, {}, cat.bytes.length);
    await Promise.all([coordinator.put(cat), coordinator.put(dog)]);
    for (const { hash } of [cat, cat, dog, cat]) await small.ofJob().get(hash);
    expect(get).toHaveBeenCalledTimes(3);
  });

  it("are refused if they are missing, damaged, beyond the limits, or not images", async () => {
    const { hub, bus, coordinator, worker } = openImages({ maxBytes: 100, maxPixels: 600 });
    const arrive = async (bytes: Uint8Array, change?: Uint8Array) => {
      const hash = await bus.blobs.put(bytes);
      const packed = { bytes: Buffer.from(pack({ ...cat, bytes, hash }, () => {})).toString("base64") };
      if (change) hub.blobs.entries.set(hash, change);
      return receive(bus, packed, anything, "x", worker.ofJob());
    };
    const code = (promise: Promise<unknown>) => promise.catch((error: { code: string }) => error.code);
    expect(await code(arrive(fakeImageFile(1, 1, 1), fakeImageFile(1, 1, 2)))).toBe("cluster/blob-damaged");
    expect(await code(worker.ofJob().get("0".repeat(64)))).toBe("cluster/blob-missing");
    for (const [file, received] of [
      [fakeImageFile(30, 30), /600[\s\S]*30 x 30/],
      [new Uint8Array(101), /100 bytes[\s\S]*101 bytes/],
      [Buffer.from("text"), /\b4 bytes/],
    ] as const) {
      const refusal = { code: "cluster/invalid-message", received: expect.stringMatching(received) };
      await expect(arrive(file)).rejects.toMatchObject(refusal);
    }
    // A failed image may come later.
    const late = fakeImageFile(3, 3);
    const { hash } = await loadImage({ bytes: late });
    expect(await code(worker.ofJob().get(hash))).toBe("cluster/blob-missing");
    await bus.blobs.put(late);
    expect(await worker.ofJob().get(hash)).toMatchObject({ width: 3 });
    await expect(send(bus, { ...cat, hash: dog.hash }, coordinator)).rejects.toThrow(TypeError);
    await expect(send(bus, cat)).rejects.toThrow(TypeError);
    await expect(receive(bus, await send(bus, cat, coordinator), anything, "x")).rejects.toMatchObject({
      code: "cluster/invalid-message",
      subject: "x",
    });
  });
});

const find = (hash: string) => [cat, dog].find((known) => known.hash === hash);

describe("a row for other machines", () => {
  const folder = mkdtempSync(join(tmpdir(), "cria-portable-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "a.png"), cat.bytes);
  writeFileSync(join(folder, "notes.txt"), "text");

  const makeWork = (createKwargs: object, own: string | null = folder) =>
    ({
      row: {
        uid: "r",
        ...(own === null ? {} : { folder: own }),
        extraInfo: { tools_kwargs: { zoom: { create_kwargs: createKwargs } } },
      },
    }) as unknown as ConversationWork;

  it("has no folder, and the images that its tools are given by path", async () => {
    const portable = makePortable({});
    const work = makeWork({ image: "a.png", more: ["notes.txt", { deep: "none.png" }, 3, "\0"] });
    const { row } = await portable(work);
    expect(row).toEqual({ uid: "r", extraInfo: work.row.extraInfo, files: { "a.png": cat } });
    // Read once for all samples.
    expect((await portable({ ...work, sample: 1 })).row).toBe(row);
    const self: { me?: unknown } = {};
    self.me = self;
    expect((await portable(makeWork(self))).row).not.toHaveProperty("files");
    expect((await makePortable({ maxPixels: 1 })(work)).row).not.toHaveProperty("files");
    const plain = makeWork({}, null);
    expect(await portable(plain)).toBe(plain);
  });
});
