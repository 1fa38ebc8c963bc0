import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { checkConfig } from "../config/check-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { crc32c } from "./crc32c.js";
import type { Generation } from "./generation.js";
import { makeMetricName } from "./mlflow-tracker.js";
import { makeTrackers, startTrackers } from "./open-trackers.js";
import { QueuedTracker } from "./queued-tracker.js";
import type { TrackedRun, TrackedStep, Tracker } from "./tracker.js";

const folder = mkdtempSync(join(tmpdir(), "cria-trackers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Request {
  method: string;
  path: string;
  authorization: string | undefined;
  body: Record<string, unknown>;
}

/** A local stand-in; `answer` gives the status and the JSON. */
async function serve(answer: (request: Request) => { status?: number; body?: unknown }): Promise<string> {
  const server = createServer(async (message: IncomingMessage, response) => {
    let text = "";
    for await (const chunk of message) text += chunk;
    const { status = 200, body = {} } = answer({
      method: message.method!,
      path: message.url!,
      authorization: message.headers.authorization,
      body: text ? (JSON.parse(text) as Record<string, unknown>) : {},
    });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const makeConfig = (...logger: string[]) =>
  checkConfig(
    trainConfigSchema,
    {
      actor_rollout_ref: { model: { path: "x.gguf" } },
      data: { train_files: "x.jsonl" },
      trainer: { logger, project_name: "llamas", experiment_name: "first" },
    },
    "test",
  );

/** Runs the trackers that a config names over some steps, as a training does. */
async function track(
  logger: string,
  env: NodeJS.ProcessEnv,
  steps: TrackedStep["metrics"][],
  resumedStep: number | null = null,
  generations?: readonly Generation[],
): Promise<string[]> {
  const config = makeConfig(logger);
  const warnings: string[] = [];
  const trackers = await startTrackers(makeTrackers(config, env), config, {
    folder,
    resumedStep,
    warn: (text) => warnings.push(text),
  });
  for (const [i, metrics] of steps.entries())
    trackers.log((resumedStep ?? 0) + i + 1, metrics, i === 0 ? generations : undefined);
  await trackers.finish("finished");
  return warnings;
}

const generations: Generation[] = [
  { input: "<|im_start|>user\n2+2?", output: "4\nsure", groundTruth: "4", score: 1 },
  { input: "größer?", output: "nein", groundTruth: { answer: ["ja"] }, score: -0.5 },
];

describe("tensorboard", () => {
  // An independent reading of the format: CRC bit by bit, protobuf by its wire format.
  function crcBitwise(bytes: Uint8Array): number {
    let crc = 0xffffffffn;
    for (const byte of bytes) {
      crc ^= BigInt(byte);
      for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x82f63b78n : crc >> 1n;
    }
    return Number(crc ^ 0xffffffffn);
  }

  function unmask(masked: number): number {
    const rotated = (masked - 0xa282ead8) >>> 0;
    return ((rotated >>> 17) | (rotated << 15)) >>> 0;
  }

  function decodeRecords(file: Buffer): Buffer[] {
    const records: Buffer[] = [];
    for (let at = 0; at < file.length; ) {
      const length = Number(file.readBigUInt64LE(at));
      expect(unmask(file.readUInt32LE(at + 8))).toBe(crcBitwise(file.subarray(at, at + 8)));
      const data = file.subarray(at + 12, at + 12 + length);
      expect(unmask(file.readUInt32LE(at + 12 + length))).toBe(crcBitwise(data));
      records.push(data);
      at += 16 + length;
    }
    return records;
  }

  type Field = { field: number; wire: number; value: number | Buffer };
  function decodeMessage(data: Buffer): Field[] {
    const fields: Field[] = [];
    let at = 0;
    const varint = () => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = data[at++]!;
        value += (byte & 127) * 2 ** shift;
        if (byte < 128) return value;
      }
    };
    while (at < data.length) {
      const key = varint();
      const wire = key & 7;
      let value: number | Buffer;
      if (wire === 0) value = varint();
      else {
        const length = wire === 1 ? 8 : wire === 5 ? 4 : varint();
        const bytes = data.subarray(at, at + length);
        value = wire === 1 ? bytes.readDoubleLE() : wire === 5 ? bytes.readFloatLE() : bytes;
        at += length;
      }
      fields.push({ field: key >> 3, wire, value });
    }
    return fields;
  }

  const get = (fields: Field[], field: number) => fields.find((f) => f.field === field)?.value;

  it("CRC-32C has its published values", () => {
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43);
  });

  it("writes event files that an independent reader understands; a resumed run takes back later steps", async () => {
    const before = Date.now() / 1000;
    expect(
      await track("tensorboard", {}, [
        { "actor/pg_loss": -0.5, "critic/größe": 1e-3 },
        { "actor/pg_loss": 2 ** 20, bad: Number.NaN },
      ]),
    ).toEqual([]);
    const [name] = readdirSync(join(folder, "tensorboard"));
    expect(name).toMatch(/^events\.out\.tfevents\.\d+\./);
    const events = decodeRecords(readFileSync(join(folder, "tensorboard", name!))).map(decodeMessage);
    expect(String(get(events[0]!, 3))).toBe("brain.Event:2");
    const scalars = events.slice(1).map((event) => {
      expect(get(event, 1)).toBeGreaterThanOrEqual(before - 1);
      const values = decodeMessage(get(event, 5) as Buffer).map((f) => decodeMessage(f.value as Buffer));
      return [get(event, 2), Object.fromEntries(values.map((v) => [String(get(v, 1)), get(v, 2)]))];
    });
    expect(scalars).toEqual([
      [1, { "actor/pg_loss": -0.5, "critic/größe": Math.fround(1e-3) }],
      [2, { "actor/pg_loss": 2 ** 20 }],
    ]);
    rmSync(join(folder, "tensorboard"), { recursive: true });
    await track("tensorboard", {}, [{ a: 1 }], 300, generations);
    const [again] = readdirSync(join(folder, "tensorboard"));
    const resumed = decodeRecords(readFileSync(join(folder, "tensorboard", again!))).map(decodeMessage);
    expect(get(resumed[1]!, 2)).toBe(301);
    expect(decodeMessage(get(resumed[1]!, 7) as Buffer)).toEqual([{ field: 1, wire: 0, value: 1 }]);
    expect(get(resumed[2]!, 2)).toBe(301);
    // Texts: a string tensor of the text plugin.
    expect(get(resumed[3]!, 2)).toBe(301);
    const value = decodeMessage(get(decodeMessage(get(resumed[3]!, 5) as Buffer), 1) as Buffer);
    expect(String(get(value, 1))).toBe("val/generations/text_summary");
    const plugin = decodeMessage(get(decodeMessage(get(value, 9) as Buffer), 1) as Buffer);
    expect(String(get(plugin, 1))).toBe("text");
    const tensor = decodeMessage(get(value, 8) as Buffer);
    expect(get(tensor, 1)).toBe(7);
    const dimension = decodeMessage(get(decodeMessage(get(tensor, 2) as Buffer), 2) as Buffer);
    expect(get(dimension, 1)).toBe(2);
    const texts = tensor.filter((f) => f.field === 8).map((f) => String(f.value));
    expect(texts[0]).toContain("**output**\n\n    4\n    sure\n\n**gts**\n\n    4\n\n**score** 1");
    expect(texts[1]).toContain("größer?");
  });
});

describe("mlflow", () => {
  const artifacts = new Map<string, unknown>();
  /** Answers by the documented rules of the REST API, and refuses what they forbid. */
  function makeServer(artifactRoot = "mlflow-artifacts:") {
    const experiments = new Map<string, string>();
    const runs = new Map<
      string,
      { name: unknown; status: unknown; metrics: unknown[]; params: Map<string, unknown> }
    >();
    const requests: Request[] = [];
    const refuse = (status: number, error_code: string) => ({ status, body: { error_code, message: error_code } });
    const answer = (request: Request) => {
      requests.push(request);
      const { body } = request;
      const url = new URL(request.path, "http://x");
      const route = url.pathname.replace("/api/2.0/mlflow/", "");
      const run = runs.get(body.run_id as string);
      const artifact = /^\/api\/2\.0\/mlflow-artifacts\/artifacts\/(.+)$/.exec(url.pathname)?.[1];
      if (artifact && request.method === "PUT") {
        artifacts.set(decodeURIComponent(artifact), body);
        return {};
      }
      switch (`${request.method} ${route}`) {
        case "GET experiments/get-by-name": {
          const id = experiments.get(url.searchParams.get("experiment_name")!);
          return id ? { body: { experiment: { experiment_id: id } } } : refuse(404, "RESOURCE_DOES_NOT_EXIST");
        }
        case "POST experiments/create":
          experiments.set(body.name as string, `${experiments.size + 1}`);
          return { body: { experiment_id: `${experiments.size}` } };
        case "POST runs/create": {
          if (![...experiments.values()].includes(body.experiment_id as string))
            return refuse(400, "INVALID_PARAMETER_VALUE");
          const id = `run${runs.size}`;
          runs.set(id, { name: body.run_name, status: "RUNNING", metrics: [], params: new Map() });
          const artifact_uri = `${artifactRoot}/1/${id}/artifacts`;
          return { body: { run: { info: { run_id: id, artifact_uri } } } };
        }
        case "POST runs/log-batch": {
          const metrics = (body.metrics ?? []) as { key: string; value: unknown; timestamp: number; step: number }[];
          const params = (body.params ?? []) as { key: string; value: string }[];
          const bad =
            !run ||
            metrics.length > 1000 ||
            params.length > 100 ||
            metrics.some(
              (m) =>
                !/^[\w\-. :/]+$/.test(m.key) ||
                typeof m.value !== "number" ||
                !Number.isInteger(m.step) ||
                m.timestamp < 1e12,
            ) ||
            params.some((p) => typeof p.value !== "string" || p.value.length > 500 || run.params.has(p.key));
          if (bad) return refuse(400, "INVALID_PARAMETER_VALUE");
          run.metrics.push(...metrics.map((m) => [m.step, m.key, m.value]));
          for (const p of params) run.params.set(p.key, p.value);
          return {};
        }
        case "POST runs/update":
          if (!run) return refuse(404, "RESOURCE_DOES_NOT_EXIST");
          run.status = body.status;
          return { body: { run_info: {} } };
      }
      return refuse(404, "ENDPOINT_NOT_FOUND");
    };
    return { experiments, runs, requests, answer };
  }

  it("experiment, run, parameters, metrics, end; a resumed run goes on in the same run", async () => {
    const server = makeServer();
    const env = { MLFLOW_TRACKING_URI: `${await serve(server.answer)}/`, MLFLOW_TRACKING_TOKEN: "t0" };
    const many = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`m/${i}`, i]));
    expect(await track("mlflow", env, [{ "val-core/a b+c/acc/mean@4": 0.5 }, many])).toEqual([]);
    expect([...server.experiments.keys()]).toEqual(["llamas"]);
    const run = server.runs.get("run0")!;
    expect(run).toMatchObject({ name: "first", status: "FINISHED" });
    expect(run.metrics[0]).toEqual([1, "val-core/a b_c/acc/mean_at_4", 0.5]);
    expect(run.metrics).toHaveLength(1501);
    expect(run.params.get("algorithm.adv_estimator")).toBe("grpo");
    expect(run.params.size).toBeGreaterThan(60);
    expect(new Set(server.requests.map((r) => r.authorization))).toEqual(new Set(["Bearer t0"]));
    expect(await track("mlflow", env, [{ x: 1 }], 2)).toEqual([]);
    expect(server.runs.size).toBe(1);
    expect(run.metrics.at(-1)).toEqual([3, "x", 1]);
    // A new run is another run of the same experiment.
    expect(await track("mlflow", env, [{ x: 1 }])).toEqual([]);
    expect([server.runs.size, server.experiments.size]).toEqual([2, 1]);
  });

  it("validation generations are an artifact; if the server takes none, metrics still arrive", async () => {
    const server = makeServer();
    const env = { MLFLOW_TRACKING_URI: await serve(server.answer) };
    expect(await track("mlflow", env, [{ a: 1 }, { a: 2 }], null, generations)).toEqual([]);
    expect([...artifacts]).toEqual([
      [
        "1/run0/artifacts/val_step1.json",
        [
          { input: "<|im_start|>user\n2+2?", output: "4\nsure", gts: "4", score: 1 },
          { input: "größer?", output: "nein", gts: { answer: ["ja"] }, score: -0.5 },
        ],
      ],
    ]);
    expect(await track("mlflow", env, [{ a: 3 }], 2, generations)).toEqual([]);
    expect([...artifacts.keys()][1]).toBe("1/run0/artifacts/val_step3.json");
    const elsewhere = makeServer("s3://bucket");
    const { MLFLOW_TRACKING_URI: _, ...rest } = env;
    const url = { ...rest, MLFLOW_TRACKING_URI: await serve(elsewhere.answer) };
    expect(await track("mlflow", url, [{ a: 1 }, { a: 2 }], null, generations)).toEqual([
      expect.stringMatching(/validation generations: the server does not take artifacts .*s3:\/\/bucket/),
    ]);
    expect(elsewhere.runs.get("run0")!.metrics).toEqual([
      [1, "a", 1],
      [2, "a", 2],
    ]);
  });

  it("needs an address, and drops characters of names that MLflow forbids", () => {
    expect(() => makeTrackers(makeConfig("mlflow"), {})).toThrow(
      expect.objectContaining({
        code: "config/tracker",
        subject: expect.stringContaining("MLFLOW_TRACKING_URI"),
        remedy: expect.stringContaining("`mlflow server`"),
      }),
    );
    expect(makeMetricName("val-core/x/acc/best@8/mean")).toBe("val-core/x/acc/best_at_8/mean");
  });
});

describe("wandb", () => {
  /** Answers as W&B does to its own client; `uploads` says whether it takes files. */
  function makeServer(uploads = true) {
    const requests: Request[] = [];
    const history: string[] = [];
    const files = new Map<string, Record<string, unknown>>();
    const answer = (request: Request) => {
      requests.push(request);
      const { path, body } = request;
      if (request.method === "PUT") {
        if (!uploads) return { status: 403 };
        files.set(decodeURIComponent(path.replace("/upload/", "")), body);
        return {};
      }
      if (path === "/graphql") {
        const variables = body.variables as Record<string, string>;
        if ((body.query as string).includes("historyLineCount")) {
          const historyTail = JSON.stringify(history.slice(-2));
          return { body: { data: { model: { bucket: { historyLineCount: history.length, historyTail } } } } };
        }
        if ((body.query as string).includes("createRunFiles")) {
          const [name] = variables.files as unknown as string[];
          const uploaded = { name, uploadUrl: `/upload/${encodeURIComponent(name!)}` };
          return {
            body: { data: { createRunFiles: { runID: "x", uploadHeaders: ["X-Store: a:b"], files: [uploaded] } } },
          };
        }
        expect(body.query).toMatch(/upsertBucket\(input: \{ name: \$id, modelName: \$project/);
        expect(JSON.parse(variables.config!).algorithm.value.adv_estimator).toBe("grpo");
        const project = { name: variables.project, entity: { name: variables.entity ?? "herd" } };
        return { body: { data: { upsertBucket: { bucket: { name: variables.id, project }, inserted: true } } } };
      }
      const streamed = body.files as Record<string, { offset: number; content: string[] }> | undefined;
      const lines = streamed?.["wandb-history.jsonl"];
      if (lines) {
        // A history only grows.
        expect(lines.offset).toBe(history.length);
        history.push(...lines.content);
      }
      return {};
    };
    const readHistory = () => history.map((line) => JSON.parse(line) as Record<string, unknown>);
    return { requests, history, files, answer, readHistory };
  }

  it("run by GraphQL, history by file_stream, end; a resumed run appends to the same run", async () => {
    const { requests, history, answer } = makeServer();
    const env = { WANDB_BASE_URL: await serve(answer), WANDB_API_KEY: "k1" };
    expect(await track("wandb", env, [{ a: 1 }, { a: 2, b: 3 }])).toEqual([]);
    expect(history.map((line) => JSON.parse(line))).toMatchObject([
      { a: 1, _step: 1 },
      { a: 2, b: 3, _step: 2 },
    ]);
    const id = (requests[0]!.body.variables as Record<string, string>).id;
    expect(id).toMatch(/^[0-9a-f]{8}$/);
    expect(requests.at(-1)).toMatchObject({
      path: `/files/herd/llamas/${id}/file_stream`,
      authorization: `Basic ${Buffer.from("api:k1").toString("base64")}`,
      body: { complete: true, exitcode: 0 },
    });
    expect(await track("wandb", env, [{ a: 4 }], 2)).toEqual([]);
    expect(history.map((line) => JSON.parse(line)._step)).toEqual([1, 2, 3]);
    expect(requests.at(-1)!.path).toContain(id);
  });

  it("a step that a resumed run computes again is in the history once", async () => {
    const server = makeServer();
    const env = { WANDB_BASE_URL: await serve(server.answer), WANDB_API_KEY: "k1" };
    await track("wandb", env, [{ a: 1 }, { a: 2 }, { a: 3 }]);
    // Killed after step 3, and its last checkpoint was of step 1.
    expect(await track("wandb", env, [{ a: 20 }, { a: 30 }, { a: 40 }, { a: 50 }], 1)).toEqual([]);
    expect(server.readHistory().map((line) => [line._step, line.a])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 40],
      [5, 50],
    ]);
    const summaries = server.requests.flatMap((r) => {
      const files = r.body.files as Record<string, { content: string[] }> | undefined;
      return files ? [JSON.parse(files["wandb-summary.json"]!.content[0]!).a] : [];
    });
    expect(summaries.at(-1)).toBe(50);
    expect(await track("wandb", env, [{ a: 6 }], 5)).toEqual([]);
    expect(server.readHistory().at(-1)).toMatchObject({ _step: 6, a: 6 });
  });

  it("validation generations are a table among the run's files; where that fails, metrics still arrive", async () => {
    const server = makeServer();
    const env = { WANDB_BASE_URL: await serve(server.answer), WANDB_API_KEY: "k1" };
    expect(await track("wandb", env, [{ a: 1 }, { a: 2 }], null, generations)).toEqual([]);
    const [[name, table]] = [...server.files] as [[string, Record<string, unknown>]];
    expect(name).toMatch(/^media\/table\/val\/generations_1_[0-9a-f]{20}\.table\.json$/);
    expect(table).toEqual({
      columns: ["step", "input", "output", "ground_truth", "score"],
      data: [
        [1, "<|im_start|>user\n2+2?", "4\nsure", "4", 1],
        [1, "größer?", "nein", '{"answer":["ja"]}', -0.5],
      ],
    });
    const text = JSON.stringify(table);
    expect(server.readHistory()).toMatchObject([
      {
        _step: 1,
        a: 1,
        "val/generations": {
          _type: "table-file",
          path: name,
          ncols: 5,
          nrows: 2,
          size: Buffer.byteLength(text),
          sha256: createHash("sha256").update(text).digest("hex"),
        },
      },
      { _step: 2, a: 2 },
    ]);
    expect(server.requests.find((r) => r.method === "PUT")!.authorization).toBeUndefined();
    expect(server.requests.map((r) => r.body.uploaded).filter(Boolean)).toEqual([[name]]);
    const refusing = makeServer(false);
    const there = { WANDB_BASE_URL: await serve(refusing.answer), WANDB_API_KEY: "k1" };
    expect(await track("wandb", there, [{ a: 1 }, { a: 2 }], null, generations)).toEqual([
      expect.stringMatching(/validation generations: the upload of media.*answered with 403/),
    ]);
    expect(refusing.readHistory()).toMatchObject([{ a: 1 }, { a: 2 }]);
    expect(refusing.readHistory()[0]).not.toHaveProperty("val/generations");
  });

  it("an answer with errors is a warning with the server's words; without a key it is an error", async () => {
    const url = await serve(() => ({ body: { errors: [{ message: "permission denied" }] } }));
    const warnings = await track("wandb", { WANDB_BASE_URL: url, WANDB_API_KEY: "k" }, [{ a: 1 }]);
    expect(warnings[0]).toMatch(/tracker wandb fails, training goes on without it: .*permission denied/);
    expect(() => makeTrackers(makeConfig("wandb"), {})).toThrow(
      expect.objectContaining({ code: "config/tracker", subject: expect.stringContaining("WANDB_API_KEY") }),
    );
  });
});

describe("a bad tracker", () => {
  const run: TrackedRun = { project: "p", experiment: "e", folder, config: {}, resumedStep: null, saved: null };

  class TestTracker implements Tracker {
    readonly name = "test";
    readonly seen: number[] = [];
    finished: string | null = null;
    constructor(private readonly behave: (what: string) => Promise<unknown> | undefined) {}
    async start() {
      await this.behave("start");
      return null;
    }
    async log(steps: readonly TrackedStep[]) {
      await this.behave("log");
      this.seen.push(...steps.map((s) => s.step));
    }
    async finish(status: string) {
      await this.behave("finish");
      this.finished = status;
    }
  }

  /** @returns `waited`: how long the end took, in milliseconds of a clock that stands still otherwise. */
  async function drive(tracker: Tracker, steps: number, options: object) {
    vi.useFakeTimers();
    try {
      const warnings: string[] = [];
      const queued = new QueuedTracker(tracker, run, (text) => warnings.push(text), undefined, options);
      for (let step = 1; step <= steps; step++) queued.log(step, { x: step });
      await vi.advanceTimersByTimeAsync(5);
      const began = Date.now();
      let waited: number | undefined;
      queued.finish("finished").then(() => {
        waited = Date.now() - began;
      });
      await vi.advanceTimersByTimeAsync(60_000);
      return { warnings, waited };
    } finally {
      vi.useRealTimers();
    }
  }

  const hang = () => new Promise<never>(() => undefined);

  it("that hangs never holds training up; the end waits for it only so long", async () => {
    for (const where of ["start", "log", "finish"]) {
      const tracker = new TestTracker((what) => (what === where ? hang() : undefined));
      const { warnings, waited } = await drive(tracker, 2000, { timeoutMs: 40, finishMs: 150 });
      expect(waited).toBeLessThanOrEqual(150);
      expect(warnings.filter((text) => text.includes("fails"))).toEqual([
        "tracker test fails, training goes on without it: no answer within 0.0 s",
      ]);
      // Even a tracker that takes all it is given loses steps here: they come faster than the queue is emptied.
      expect(warnings).toHaveLength(2);
      expect(warnings[1]).toMatch(/steps did not reach it/);
    }
  });

  it("that fails causes one warning, and gets the rest when it recovers", async () => {
    let calls = 0;
    const tracker = new TestTracker((what) =>
      what === "log" && ++calls <= 2 ? Promise.reject(new Error("out of paper")) : undefined,
    );
    const { warnings } = await drive(tracker, 10, { batch: 2 });
    expect(tracker.seen).toEqual([5, 6, 7, 8, 9, 10]);
    expect(tracker.finished).toBe("finished");
    expect(warnings).toEqual([
      "tracker test fails, training goes on without it: out of paper",
      "tracker test: 4 steps did not reach it",
    ]);
  });

  it("that is slow loses the oldest steps beyond the queue's capacity", async () => {
    const tracker = new TestTracker((what) =>
      what === "log" ? new Promise((resolve) => setTimeout(resolve, 1)) : undefined,
    );
    const { warnings } = await drive(tracker, 100, { capacity: 20 });
    expect(tracker.seen).toEqual(Array.from({ length: 20 }, (_, i) => 81 + i));
    expect(warnings).toEqual(["tracker test: 80 steps did not reach it"]);
  });

  it("servers that refuse, or are not there, are one warning each", async () => {
    const refusing = await serve(() => ({ status: 503, body: { message: "down" } }));
    expect(await track("mlflow", { MLFLOW_TRACKING_URI: refusing }, [{ a: 1 }])).toEqual([
      expect.stringMatching(/answered 503: .*down/),
      "tracker mlflow: 1 steps did not reach it",
    ]);
    const gone = { MLFLOW_TRACKING_URI: "http://127.0.0.1:9" };
    expect((await track("mlflow", gone, [{ a: 1 }]))[0]).toMatch(/ECONNREFUSED|bad port/);
    // An unreadable file of ids is no reason to fail either.
    writeFileSync(join(folder, "trackers.json"), "{");
    expect(await track("tensorboard", {}, [{ a: 1 }], 1)).toEqual([]);
  });
});
