import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DumpLine } from "@cria/records";
import { RequestError } from "@cria/serve/internal";
import { loadConfig, openReplay, openTraining, type Replay, runTraining, trainConfigSchema } from "@cria/trainer";
import type { Alternatives, ForkEvent, NowLogprobs } from "@cria/viewer/api";
import { Hono } from "hono";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { demoConfigPath } from "../../assets/embedded-policy.js";
import { RunCatalog } from "../server/catalog.js";
import { createViewerApp } from "../server/create-app.js";
import { ModelKeeper } from "./model-keeper.js";
import { type AskedEpisode, addModelRoutes, type ModelRoutes } from "./model-routes.js";

const folder = mkdtempSync(join(tmpdir(), "cria-model-routes-"));
const path = join(folder, "calculator", "grpo-lora");
const opened: string[] = [];
let lines: DumpLine[];
let keeper: ModelKeeper;
let routes: ModelRoutes;
const episode: Pick<AskedEpisode, "path" | "isRunning"> = { path, isRunning: false };
const app = new Hono();

beforeAll(async () => {
  const overrides = [
    "data.train_batch_size=4",
    "actor_rollout_ref.rollout.n=2",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "trainer.total_training_steps=2",
    "trainer.threads=1",
    "trainer.val_before_train=false",
    `trainer.default_local_dir=${folder}`,
  ];
  const { values: config, folder: configFolder } = loadConfig(trainConfigSchema, demoConfigPath, overrides);
  const training = await openTraining(config, configFolder);
  await runTraining({ ...training, valRows: [] }, { configFolder });
  await training.dispose();
  const text = readFileSync(join(path, "rollouts", "2.jsonl"), "utf8").trim();
  lines = text.split("\n").map((line) => JSON.parse(line) as DumpLine);
  keeper = new ModelKeeper({
    open: (run, options) => {
      opened.push(run);
      return openReplay(run, options);
    },
  });
  routes = addModelRoutes(
    app,
    async (c) => ({ ...episode, isValidation: false, line: lines[Number(c.req.param("line"))]! }),
    keeper,
  );
  app.onError((error, c) =>
    c.json({ message: error.message }, (error instanceof RequestError ? error.status : 400) as 400),
  );
});
afterAll(async () => {
  await routes?.close();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (name: string, body: object = {}, line = 0, signal?: AbortSignal) =>
  app.request(`/api/runs/r/dumps/2/episodes/${line}/${name}`, { method: "POST", body: JSON.stringify(body), signal });

async function readEvents(response: Response): Promise<ForkEvent[]> {
  return (await response.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ForkEvent);
}

describe("questions to a model", () => {
  it("list alternative tokens, and load the model once", async () => {
    const token = lines[0]!.response_mask.indexOf(1);
    const response = await ask("alternatives", { token, count: 5 });
    const { token: told, choices } = (await response.json()) as Alternatives;
    expect([response.status, told, choices.length]).toEqual([200, token, 5]);
    const logprobs = choices.map(({ logprob }) => logprob);
    expect(logprobs).toEqual([...logprobs].sort((a, b) => b - a));
    const own = choices.find(({ id }) => id === lines[0]!.token_ids[token]);
    if (own) expect(own.logprob).toBe(Math.fround(lines[0]!.rollout_logprobs[token]!));
    await ask("alternatives", { token, count: 5 }, 1);
    expect(opened).toEqual([path]);
  });

  it("give logprobs by the newest weights", async () => {
    const { step, logprobs } = (await (await ask("now")).json()) as NowLogprobs;
    expect(step).toBe(2);
    expect(logprobs.map((x) => (x === 0 ? 0 : 1))).toEqual(lines[0]!.response_mask);
  });

  it("go on from a token: pieces as they come, then how it ended", async () => {
    const token = lines[0]!.turns[0]!.start;
    const response = await ask("fork", { token, replacement: lines[0]!.token_ids[token], seed: 7 });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const events = await readEvents(response);
    expect(events[0]).toEqual({ type: "loading" });
    expect(events[1]).toMatchObject({ type: "text", role: "assistant" });
    expect(events.at(-1)).toEqual({
      type: "end",
      reward: expect.any(Number),
      success: expect.any(Boolean),
      finish: expect.any(String),
      tokens: expect.any(Number),
    });
    expect(await readEvents(await ask("fork", { token, replacement: lines[0]!.token_ids[token], seed: 7 }))).toEqual(
      events,
    );
    const [, wrong] = await readEvents(await ask("fork", { token: 0 }));
    expect(wrong).toMatchObject({ type: "error", message: expect.stringContaining("token 0") });
  });

  it("need a yes while the run trains", async () => {
    episode.isRunning = true;
    const refused = await ask("now");
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ error: { needs: "confirm", message: expect.any(String) } });
    expect((await ask("fork", { token: 0 })).status).toBe(409);
    expect((await ask("now", { confirm: true })).status).toBe(200);
    episode.isRunning = false;
  });

  it("are refused without a model, and with a wrong body", async () => {
    const file = join(path, "run.json");
    const before = readFileSync(file, "utf8");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(before), model: join(folder, "gone.gguf") }));
    for (const name of ["now", "fork", "alternatives"]) {
      const gone = await ask(name, { token: 70 });
      expect([name, gone.status]).toEqual([name, 404]);
      expect(((await gone.json()) as { message: string }).message).toContain("gone.gguf");
    }
    writeFileSync(file, before);
    for (const body of [{}, { token: -1 }, { token: 3, count: 51 }, { token: "3" }])
      expect((await ask("alternatives", body)).status).toBe(400);
    const large = await ask("now", { text: "x".repeat(1 << 17) });
    expect([400, 413]).toContain(large.status);
  });
});

it("are answered by the viewer's server", async () => {
  const catalog = new RunCatalog([folder]);
  const viewer = createViewerApp({ catalog, assets: new Map(), host: "127.0.0.1", token: null });
  const get = (address: string, init?: RequestInit) =>
    viewer.app.request(`http://127.0.0.1${address}`, { ...init, headers: { host: "127.0.0.1" } });
  try {
    const [run] = (await (await get("/api/runs")).json()) as { id: string }[];
    const address = `/api/runs/${run!.id}/dumps/2/episodes/0`;
    const token = lines[0]!.response_mask.indexOf(1);
    const post = (name: string, body: object) =>
      get(`${address}/${name}`, { method: "POST", body: JSON.stringify(body) });
    const answer = await post("alternatives", { token, count: 3 });
    expect([answer.status, ((await answer.json()) as Alternatives).choices.length]).toEqual([200, 3]);
    const wrong = await post("alternatives", { token: 0 });
    expect([wrong.status, await wrong.json()]).toMatchObject([
      400,
      { error: { message: expect.stringContaining("token 0") } },
    ]);
    const unknown = await get(`/api/runs/${run!.id}/dumps/9/episodes/0/now`, { method: "POST" });
    expect(unknown.status).toBe(404);
  } finally {
    await viewer.close();
    catalog.close();
  }
});

describe("a model that is kept", () => {
  const makeFake = () => {
    const replays: { path: string; isClosed: boolean }[] = [];
    const open = async (run: string) => {
      const fake = { path: run, isClosed: false };
      replays.push(fake);
      return {
        close: async () => {
          fake.isClosed = true;
        },
      } as unknown as Replay;
    };
    return { replays, open };
  };
  const never = new AbortController().signal;

  it("makes room for that of another run, and is freed after a while", async () => {
    vi.useFakeTimers();
    try {
      const { replays, open } = makeFake();
      const models = new ModelKeeper({ open, idleMs: 1000 });
      await models.use("a", never, async () => undefined);
      await models.use("a", never, async () => undefined);
      await models.use("b", never, async () => undefined);
      expect(replays).toEqual([
        { path: "a", isClosed: true },
        { path: "b", isClosed: false },
      ]);
      await vi.advanceTimersByTimeAsync(900);
      expect(models.loaded).toBe("b");
      await vi.advanceTimersByTimeAsync(200);
      expect([models.loaded, replays[1]!.isClosed]).toEqual([null, true]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("answers one question after the other, skips aborted ones, and ends with the viewer", async () => {
    const { replays, open } = makeFake();
    const models = new ModelKeeper({ open });
    const order: string[] = [];
    const gone = new AbortController();
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const first = models.use("a", never, async (_, signal) => {
      order.push("begins");
      begin();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      order.push("ends");
    });
    const second = models.use("a", gone.signal, async () => void order.push("never"));
    gone.abort(new Error("gone"));
    const third = models.use("a", never, async () => void order.push("never"));
    const results = Promise.allSettled([first, second, third]);
    await begun;
    await models.close();
    expect((await results).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(order).toEqual(["begins", "ends"]);
    expect(replays.every(({ isClosed }) => isClosed)).toBe(true);
  });
});

it("a reader that goes away ends the fork", async () => {
  let aborted: ((reason: unknown) => void) | undefined;
  const seen = new Promise((resolve) => {
    aborted = resolve;
  });
  const other = new Hono();
  const models = new ModelKeeper({
    open: async () =>
      ({
        fork: (_line: unknown, _token: unknown, { signal }: { signal: AbortSignal }) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              aborted!(signal.reason);
              reject(signal.reason);
            });
          }),
        close: async () => undefined,
      }) as unknown as Replay,
  });
  addModelRoutes(other, async () => ({ ...episode, isValidation: false, line: lines[0]! }), models);
  const url = "/api/runs/r/dumps/2/episodes/0/fork";
  const response = await other.request(url, { method: "POST", body: JSON.stringify({ token: 70 }) });
  const reader = response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('{"type":"loading"}\n');
  await reader.cancel();
  expect(await seen).toBeInstanceOf(Error);
  await models.close();
});
