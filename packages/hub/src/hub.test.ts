import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type HubProgress, type HubSettings, readHubSettings, resolveData, resolveModel } from "./internal.js";
import { HubServer } from "./testing/index.js";

const q8 = randomBytes(3_000_000);
const q4 = randomBytes(1000);
const rows = (...texts: string[]) => texts.map((text) => `${JSON.stringify({ text })}\n`).join("");

let hub: HubServer;
let folder: string;
beforeAll(async () => {
  hub = await HubServer.start(
    {
      type: "model",
      name: "Qwen/Qwen3-0.6B-GGUF",
      files: {
        "README.md": "# a model",
        "Qwen3-0.6B-Q8_0.gguf": q8,
        "Qwen3-0.6B-Q4_K_M.gguf": q4,
        "mmproj-F16.gguf": q4,
        "big/Big-BF16-00001-of-00002.gguf": "one",
        "big/Big-BF16-00002-of-00002.gguf": "two",
      },
    },
    { type: "model", name: "me/private-GGUF", files: { "m.gguf": q4 }, token: "hf_secret" },
    { type: "model", name: "me/safetensors", files: { "model.safetensors": "x" } },
    {
      type: "model",
      name: "me/two-GGUF",
      files: { "a-Q8_0.gguf": "a", "a-Q6_K.gguf": "b" },
      revisions: { v2: { "a-Q8_0.gguf": "of v2" } },
    },
    {
      type: "dataset",
      name: "openai/gsm8k",
      files: {
        "README.md": "",
        "main/train-00000-of-00002.jsonl": rows("a"),
        "main/train-00001-of-00002.jsonl": rows("b"),
        "main/test-00000-of-00001.jsonl": rows("c"),
        "socratic/train-00000-of-00001.jsonl": rows("d"),
      },
      configs: [
        {
          config_name: "main",
          data_files: [
            { split: "train", path: "main/train-*" },
            { split: "test", path: "main/test-*" },
          ],
        },
        { config_name: "socratic", data_files: [{ split: "train", path: "socratic/train-*" }] },
      ],
    },
    {
      type: "dataset",
      name: "me/plain",
      files: { "data/train.jsonl": rows("a"), "data/dev.jsonl": rows("b"), "config.json": "{}" },
    },
    {
      type: "dataset",
      name: "me/csv",
      files: { "a.csv": "a,b" },
      revisions: { "refs/convert/parquet": { "default/train/0000.parquet": "PAR1" } },
    },
    { type: "dataset", name: "me/tar", files: { "a.tar": "x" } },
  );
});
afterAll(() => hub.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cria-hub-"));
  hub.faults.clear();
  hub.requests.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

const settings = (more: Partial<HubSettings> = {}): HubSettings => ({
  endpoint: hub.endpoint,
  token: undefined,
  offline: false,
  cacheFolder: folder,
  ...more,
});
const model = (address: string, more: Partial<HubSettings> = {}) => resolveModel(address, { settings: settings(more) });
const data = async (address: string, more: Partial<HubSettings> = {}) =>
  (await resolveData(address, { settings: settings(more) })).map((file) => readFileSync(file, "utf8"));
const Q8 = "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0";
const Q8_FILE = "Qwen3-0.6B-Q8_0.gguf";

describe("a model's address", () => {
  it("names a file by its quantisation, downloads it once, and then needs no network", async () => {
    const told: HubProgress[] = [];
    const path = await resolveModel(Q8, { settings: settings(), onProgress: (progress) => told.push(progress) });
    expect(q8.equals(readFileSync(path))).toBe(true);
    expect(told.at(-1)).toEqual({ label: `Qwen/Qwen3-0.6B-GGUF/${Q8_FILE}`, done: q8.length, total: q8.length });
    const asked = hub.requests.length;
    expect(await model(Q8)).toBe(path);
    expect(await model(Q8, { offline: true })).toBe(path);
    expect(hub.requests.length).toBe(asked);
    // The layout of the hub's other clients.
    const repository = join(folder, "models--Qwen--Qwen3-0.6B-GGUF");
    const commit = readFileSync(join(repository, "refs", "main"), "utf8");
    expect(path).toBe(join(repository, "snapshots", commit, Q8_FILE));
    expect(readdirSync(join(repository, "blobs"))).toHaveLength(1);
  });

  it("may name a file, parts of one, a revision, another case, or nothing where the choice is clear", async () => {
    const read = async (address: string) => readFileSync(await model(address), "utf8");
    expect(await read("hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4_K_M.gguf")).toBe(q4.toString());
    expect(await read("hf:Qwen/Qwen3-0.6B-GGUF")).toBe(q4.toString());
    expect(await read("hf:Qwen/Qwen3-0.6B-GGUF:q4_k_m")).toBe(q4.toString());
    const first = await model("hf:Qwen/Qwen3-0.6B-GGUF:BF16");
    expect([first, first.replace("00001-of", "00002-of")].map((file) => readFileSync(file, "utf8"))).toEqual([
      "one",
      "two",
    ]);
    expect(await read("hf:me/two-GGUF:Q8_0")).toBe("a");
    expect(await read("hf:me/two-GGUF:Q8_0@v2")).toBe("of v2");
    expect(await read(`hf:me/two-GGUF:Q6_K@${hub.commitOf("me/two-GGUF")}`)).toBe("b");
  });

  it("that is a path is left as it is", async () => {
    for (const path of ["models/m.gguf", "/m.gguf", "C:/hf/m.gguf"]) expect(await model(path)).toBe(path);
  });

  it("takes a token to the hub, and not to where large files lie", async () => {
    const path = await model("hf:me/private-GGUF", { token: "hf_secret" });
    expect(q4.equals(readFileSync(path))).toBe(true);
    expect(hub.leakedTokens).toEqual([]);
  });
});

describe("refuses an unknown address, with a remedy", () => {
  it.each([
    [
      "hf:Qwen/Qwen3-0.6B-GGUF:Q3_K_S",
      {
        code: "hub/failed",
        subject: "model Qwen/Qwen3-0.6B-GGUF",
        expected: "one of Q4_K_M, Q8_0, BF16",
        received: "Q3_K_S",
      },
    ],
    [
      "hf:me/two-GGUF",
      {
        code: "hub/failed",
        expected: "one of Q6_K, Q8_0",
        received: "none",
        remedy: expect.stringContaining("hf:me/two-GGUF:Q6_K"),
      },
    ],
    ["hf:me/two-GGUF/none.gguf", { code: "hub/failed", expected: "a-Q6_K.gguf, a-Q8_0.gguf", received: "none.gguf" }],
    [
      "hf:me/two-GGUF@v9",
      {
        code: "hub/not-found",
        subject: "model me/two-GGUF at v9",
        received: expect.stringContaining("Invalid rev id"),
      },
    ],
    [
      "hf:me/safetensors",
      {
        code: "hub/failed",
        expected: "a file that ends with .gguf",
        received: expect.stringContaining("model.safetensors"),
        remedy: expect.stringContaining("me/safetensors-GGUF"),
      },
    ],
    [
      "hf:me/private-GGUF",
      {
        code: "hub/not-authorised",
        received: expect.stringMatching(/^no token.*restricted/),
        remedy: expect.stringContaining("HF_TOKEN"),
      },
    ],
    ["hf:me/nothing", { code: "hub/not-authorised", received: expect.stringContaining("Repository not found") }],
    [
      "hf:gpt2",
      { code: "hub/bad-address", subject: "hf:gpt2", expected: expect.stringContaining("hf:<owner>/<model>") },
    ],
    ["hf:../..", { code: "hub/bad-address", subject: "hf:../.." }],
    ["hf:a/b/../../c.gguf", { code: "hub/bad-address", subject: "hf:a/b/../../c.gguf" }],
  ])("%s", async (address, error) => {
    await expect(model(address)).rejects.toMatchObject(error);
    // No temporary files of downloads remain.
    for (const name of readdirSync(folder, { recursive: true })) expect(String(name)).not.toMatch(/\.(lock|tmp)$/);
  });

  it("when offline and not cached, or cached in part", async () => {
    await expect(model(Q8, { offline: true })).rejects.toMatchObject({
      code: "hub/offline",
      subject: "model Qwen/Qwen3-0.6B-GGUF",
      received: "none of its files",
    });
    await data("hf:openai/gsm8k/main/test");
    await expect(data("hf:openai/gsm8k/main/train", { offline: true })).rejects.toMatchObject({
      code: "hub/offline",
      subject: "dataset openai/gsm8k",
      received: expect.stringMatching(/train-00000-of-00002\.jsonl is missing$/),
    });
    expect(await data("hf:openai/gsm8k/main/test", { offline: true })).toEqual([rows("c")]);
  });

  it("when no server answers", async () => {
    const gone = await HubServer.start();
    const { endpoint } = gone;
    await gone.stop();
    await expect(model(Q8, { endpoint })).rejects.toMatchObject({
      code: "hub/failed",
      received: expect.stringContaining("ECONNREFUSED"),
      remedy: expect.stringContaining("HF_ENDPOINT"),
    });
  });

  it("when the content is damaged: the copy is removed", async () => {
    hub.faults.set(Q8_FILE, { damaged: true });
    await expect(model(Q8)).rejects.toMatchObject({
      code: "hub/checksum",
      subject: expect.stringMatching(/Q8_0\.gguf$/),
      expected: expect.stringMatching(/^SHA-256 /),
    });
    hub.faults.clear();
    expect(q8.equals(readFileSync(await model(Q8)))).toBe(true);
  });

  it("when small content is damaged, which has Git's own hash", async () => {
    hub.faults.set("data/train.jsonl", { damaged: true });
    await expect(data("hf:me/plain/train")).rejects.toMatchObject({
      code: "hub/checksum",
      expected: expect.stringMatching(/^Git's SHA-1 /),
    });
  });

  it.runIf(existsSync("/dev/full"))("when the disk is full", async () => {
    // A device that accepts no data, instead of the file to write.
    const path = await model(Q8);
    const blob = realpathSync(path);
    rmSync(path);
    rmSync(blob);
    symlinkSync("/dev/full", `${blob}.incomplete`);
    await expect(model(Q8)).rejects.toMatchObject({
      code: "hub/disk-full",
      received: expect.stringContaining("ENOSPC"),
      remedy: expect.stringContaining("HF_HUB_CACHE"),
    });
  });

  it("when the cache cannot be written", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(model(Q8, { cacheFolder: join(folder, "file") })).rejects.toMatchObject({
      code: "hub/cache-not-writable",
      remedy: expect.stringContaining("HF_HUB_CACHE"),
    });
  });
});

describe("a download that is interrupted", () => {
  it("goes on where the connection broke", async () => {
    hub.faults.set(Q8_FILE, { cutAfter: [1_000_000, 500_000], statuses: [503] });
    expect(q8.equals(readFileSync(await model(Q8)))).toBe(true);
    const starts = hub.requests.filter((line) => line.includes("resolve") && !line.endsWith("=0-0"));
    expect(starts.length).toBeGreaterThanOrEqual(3);
    const offsets = starts.map((line) => Number(/bytes=(\d+)-/.exec(line)?.[1] ?? 0));
    expect(offsets[0]).toBe(0);
    expect(offsets.at(-1)).toBeGreaterThan(1_000_000);
  });

  it("goes on in a later process, also after SIGKILL", async () => {
    // A dead process, whose lock is left as SIGKILL leaves it.
    const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
    await new Promise((done) => child.once("exit", done));
    const controller = new AbortController();
    const stopped = new Error("stopped");
    const onProgress = ({ done }: HubProgress) => done > 0 && controller.abort(stopped);
    const first = resolveModel(Q8, { settings: settings(), signal: controller.signal, onProgress });
    await expect(first).rejects.toBe(stopped);
    const blobs = join(folder, "models--Qwen--Qwen3-0.6B-GGUF", "blobs");
    const [part] = readdirSync(blobs);
    const { size } = statSync(join(blobs, part!));
    expect(size).toBeGreaterThan(0);
    expect(size).toBeLessThan(q8.length);
    // The lock of a dead process, as SIGKILL leaves it.
    writeFileSync(join(blobs, part!.replace(".incomplete", ".lock")), `${child.pid} ${hostname()}`);
    hub.requests.length = 0;
    expect(q8.equals(readFileSync(await model(Q8)))).toBe(true);
    expect(hub.requests.filter((line) => line.includes(`bytes=${size}-`))).toHaveLength(1);
    expect(readdirSync(blobs)).toHaveLength(1);
  });

  it("is not done twice at once", async () => {
    const paths = await Promise.all([model(Q8), model(Q8), model(Q8)]);
    expect(new Set(paths).size).toBe(1);
    expect(q8.equals(readFileSync(paths[0]!))).toBe(true);
    expect(hub.countDownloads(Q8_FILE)).toBe(1);
  });
});

describe("a dataset's address", () => {
  it("names the files of a split, by the card, by names, or by the hub's conversion", async () => {
    expect(await data("hf:openai/gsm8k/main/train")).toEqual([rows("a"), rows("b")]);
    expect(await data("hf:openai/gsm8k/main/test@main")).toEqual([rows("c")]);
    expect(await data("hf:openai/gsm8k/socratic")).toEqual([rows("d")]);
    expect(await data("hf:openai/gsm8k/main/test-00000-of-00001.jsonl")).toEqual([rows("c")]);
    expect(await data("hf:me/plain/train")).toEqual([rows("a")]);
    expect(await data("hf:me/plain/validation")).toEqual([rows("b")]);
    expect(await data("hf:me/csv")).toEqual(["PAR1"]);
  });

  it.each([
    [
      "hf:openai/gsm8k",
      {
        code: "hub/failed",
        subject: "dataset openai/gsm8k",
        expected: "one of main, socratic",
        received: "nothing",
        remedy: expect.stringContaining("hf:openai/gsm8k/main/train"),
      },
    ],
    [
      "hf:openai/gsm8k/main",
      { code: "hub/failed", expected: expect.stringMatching(/^one of main\/train, main\/test/), received: "main" },
    ],
    [
      "hf:openai/gsm8k/main/dev",
      { code: "hub/failed", expected: expect.stringContaining("main/train"), received: "main/dev" },
    ],
    ["hf:openai/gsm8k/none", { code: "hub/failed", expected: "one of main, socratic", received: "none" }],
    [
      "hf:me/plain/none",
      { code: "hub/failed", expected: "one of default/validation, default/train", received: "none" },
    ],
    [
      "hf:me/tar",
      { code: "hub/failed", expected: "Parquet, JSONL or JSON files", received: "files that end with tar" },
    ],
    ["hf:me/none/train", { code: "hub/not-authorised", subject: "dataset me/none" }],
    ["hf:me", { code: "hub/bad-address", subject: "hf:me", expected: expect.stringContaining("<split>") }],
  ])("%s lists the existing names", async (address, error) => {
    await expect(data(address)).rejects.toMatchObject(error);
  });
});

describe("settings", () => {
  it("come from the variables that the hub's other clients know", () => {
    const home = join(folder, "home");
    expect(readHubSettings({ HF_HOME: home })).toEqual({
      endpoint: "https://huggingface.co",
      token: undefined,
      offline: false,
      cacheFolder: join(home, "hub"),
    });
    mkdirSync(home);
    writeFileSync(join(home, "token"), "hf_file\n");
    const given = { HF_HOME: home, HF_ENDPOINT: "http://mirror/", HF_HUB_OFFLINE: "1", HF_HUB_CACHE: "/c" };
    expect(readHubSettings(given)).toEqual({
      endpoint: "http://mirror",
      token: "hf_file",
      offline: true,
      cacheFolder: "/c",
    });
    expect(readHubSettings({ HF_HOME: home, HF_TOKEN: "hf_env" }).token).toBe("hf_env");
    expect(() => readHubSettings({ HF_TOKEN: "secret" })).toThrow(
      expect.objectContaining({
        code: "hub/bad-token",
        subject: "HF_TOKEN",
        received: expect.stringMatching(/^6 characters /),
      }),
    );
  });
});
