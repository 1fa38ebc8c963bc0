import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobBus } from "../bus/job-bus.js";
import type { RunDescription } from "../jobs/run-description.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { fillDisk } from "../testing/fill-disk.js";
import { findModel } from "./find-model.js";
import { hashModel } from "./hash-model.js";
import { receiveModel } from "./receive-model.js";
import { shareModel } from "./share-model.js";

const root = mkdtempSync(join(tmpdir(), "cria-models-"));
const cache = join(root, "cache");
let before: string | undefined;
let bus: JobBus;
let count = 0;
let folder: string;

beforeAll(() => {
  before = process.env.XDG_CACHE_HOME;
  process.env.XDG_CACHE_HOME = cache;
});
afterAll(() => {
  if (before === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = before;
  rmSync(root, { recursive: true });
});
beforeEach(() => {
  bus = openLocalBus();
  folder = join(root, `models-${count++}`);
  mkdirSync(folder);
});
afterEach(() => bus.close());

const sha = (...parts: string[]) => createHash("sha256").update(parts.join("")).digest("hex");
const write = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const describeModel = (content: string, more: Partial<RunDescription["model"]> = {}): RunDescription["model"] => ({
  name: "m.gguf",
  sha256: sha(content),
  bytes: content.length,
  address: null,
  blobs: null,
  ...more,
});

describe("models", () => {
  it("are identified by the SHA-256 of their content, which is remembered until they change", async () => {
    const path = write("m.gguf", "abc");
    expect(await hashModel(path)).toEqual({ name: "m.gguf", sha256: sha("abc"), bytes: 3 });
    // Recognized by size and modification time, without reading it again.
    const time = new Date(1e12);
    utimesSync(path, time, time);
    await hashModel(path);
    writeFileSync(path, "xyz");
    utimesSync(path, time, time);
    expect((await hashModel(path)).sha256).toBe(sha("abc"));
    utimesSync(path, time, new Date(2e12));
    expect((await hashModel(path)).sha256).toBe(sha("xyz"));
    // A new cache replaces an unreadable one.
    writeFileSync(join(cache, "cria", "model-hashes.json"), "{");
    expect((await hashModel(path)).sha256).toBe(sha("xyz"));
    expect(readdirSync(folder)).toEqual(["m.gguf"]);
  });

  it("in several files have one hash of all of them", async () => {
    write("big-00002-of-00002.gguf", "two");
    const path = write("big-00001-of-00002.gguf", "one");
    expect(await hashModel(path)).toMatchObject({ sha256: sha("one", "two"), bytes: 6 });
    expect(await shareModel(bus, path)).toBeNull();
    const found = await findModel(describeModel("onetwo"), { bus, modelDir: folder });
    expect(found).toBe(path);
  });

  it("are found below a folder by content, also through links", async () => {
    write("other.gguf", "xxx");
    mkdirSync(join(folder, "deep", "node_modules"), { recursive: true });
    writeFileSync(join(folder, "blob"), "abc");
    symlinkSync(join(folder, "blob"), join(folder, "deep", "mine.gguf"));
    expect(await findModel(describeModel("abc"), { bus, modelDir: folder })).toBe(join(folder, "deep", "mine.gguf"));
  });

  it("travel over the bus in parts, are checked, and fetched once", async () => {
    const content = "model ".repeat(1000);
    const blobs = await shareModel(bus, write("m.gguf", content));
    expect(blobs).toEqual([sha(content)]);
    const wanted = { ...describeModel(content), blobs: blobs! };
    const store = join(folder, "store");
    const path = await findModel(wanted, { bus, modelDir: store });
    expect(path).toBe(join(store, `${wanted.sha256}.gguf`));
    expect(readFileSync(path, "utf8")).toBe(content);
    const get = vi.spyOn(bus.blobs, "get");
    expect(await receiveModel(wanted, { bus, folder: store })).toBe(path);
    expect(get).not.toHaveBeenCalled();
    expect(readdirSync(store)).toEqual([`${wanted.sha256}.gguf`]);
  });

  it.each([
    ["more than was promised", { bytes: 3 }, "more bytes"],
    ["less than was promised", { bytes: 99 }, "6 bytes"],
    ["something else", { sha256: "f".repeat(64) }, `SHA-256 ${sha("abcdef")}`],
  ])("that are %s are refused, and nothing of them stays", async (_, change, received) => {
    const blobs = [await bus.blobs.put(Buffer.from("abc")), await bus.blobs.put(Buffer.from("def"))];
    const wanted = { ...describeModel("abcdef"), blobs, ...change };
    const store = join(folder, "store");
    const refusal = { code: "cluster/other-model", received };
    await expect(receiveModel(wanted, { bus, folder: store })).rejects.toMatchObject(refusal);
    expect(readdirSync(store)).toEqual([]);
  });

  it("that are missing everywhere cause an error that says so", async () => {
    const wanted = describeModel("abc", { name: "my\u001b[31m.gguf", blobs: ["0".repeat(64)] });
    await expect(findModel(wanted, { bus, modelDir: folder })).rejects.toMatchObject({
      code: "cluster/no-model",
      subject: "the model my [31m.gguf",
      received: `not in ${folder}; not on the bus: blob 000000000000: does not exist`,
      remedy: `put the file into ${folder}`,
    });
    expect(existsSync(join(folder, `${wanted.sha256}.gguf`))).toBe(false);
  });

  it("that cannot be written count as missing, with the file system's error", async () => {
    const blobs = await shareModel(bus, write("m.gguf", "room"));
    const modelDir = write("no-folder", "");
    const wanted = { ...describeModel("room"), blobs: blobs! };
    rmSync(join(folder, "m.gguf"));
    await expect(findModel(wanted, { bus, modelDir })).rejects.toMatchObject({
      code: "cluster/no-model",
      received: expect.stringMatching(/not on the bus: .*no-folder.*(EEXIST|ENOTDIR)/),
    });
  });

  it("that do not fit on the disk count as missing, leave nothing, and are fetched once there is room", async () => {
    const blobs = [await bus.blobs.put(Buffer.from("abc")), await bus.blobs.put(Buffer.from("def"))];
    const wanted = { ...describeModel("abcdef"), blobs };
    const modelDir = join(folder, "store");
    const makeRoom = await fillDisk(2);
    try {
      await expect(findModel(wanted, { bus, modelDir })).rejects.toMatchObject({
        code: "cluster/no-model",
        received: expect.stringMatching(/not on the bus: .*ENOSPC/),
      });
    } finally {
      makeRoom();
    }
    expect(readdirSync(modelDir)).toEqual([]);
    expect(readFileSync(await findModel(wanted, { bus, modelDir }), "utf8")).toBe("abcdef");
  });

  it("are not looked for any more when the signal aborts", async () => {
    write("m.gguf", "abc");
    const signal = AbortSignal.abort(new Error("another training"));
    await expect(findModel(describeModel("abc"), { bus, modelDir: folder, signal })).rejects.toThrow(
      "another training",
    );
  });
});
