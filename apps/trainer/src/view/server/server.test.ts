import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { encodePng } from "@cria/core";
import type {
  ApiError,
  EnvironmentDetail,
  EpisodeDetail,
  GroupDetail,
  GroupPage,
  PromptDetail,
  PromptEntry,
  RunDetail,
  RunSummary,
  ViewerEvent,
} from "@cria/viewer/api";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { makeDumpLine } from "../testing/make-dump-line.js";
import { type Asset, readAssets } from "./assets.js";
import { RunCatalog } from "./catalog.js";
import { createViewerApp } from "./create-app.js";
import { listenViewer } from "./listen.js";

const root = mkdtempSync(join(tmpdir(), "cria-view-"));
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const encode = (text: string): Asset => ({
  content: new TextEncoder().encode(text),
  type: "text/html; charset=utf-8",
  isHashed: false,
});
const assets = new Map([
  ["index.html", encode("<head></head>the app")],
  ["assets/app-1.js", { ...encode("run()"), type: "text/javascript; charset=utf-8", isHashed: true }],
]);

function write(path: string, text: string): string {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  return join(root, path);
}

const schema = {
  type: "function",
  function: { name: "calculator", description: "Computes.", parameters: { type: "object", properties: {} } },
};
const call = (name: string, expression: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": {"expression": "${expression}"}}\n</tool_call>`;
const hostile = "<script>alert(1)</script>\u001b[31m\u0000\u2028";

/** A run of two steps and a validation; each calls a tool that works, and one that does not exist. */
function writeRun(name: string): string {
  const conversation = (step: number, uid: string, sample: number, more: object = {}) =>
    makeDumpLine({
      step,
      uid,
      sample,
      place: `train.jsonl, line ${uid.at(-1)}`,
      question: `${hostile} ${uid}`,
      messages: [
        { role: "user", content: `${hostile} ${uid}` },
        { role: "assistant", content: call("calculator", `${step}+1`) + call("search", "x") },
        { role: "tool", name: "calculator", content: "2" },
        { role: "tool", name: "search", content: "error: no such tool" },
        { role: "assistant", content: "done" },
      ],
      turns: [
        { role: "assistant", start: 2, end: 3 },
        { role: "tool", start: 3, end: 3, failures: [null, "unknown_tool"], started_at: 1000, ended_at: 1030 },
        { role: "assistant", start: 3, end: 4 },
      ],
      tools: ["calculator"],
      tool_schemas: uid === "sums/0" && sample === 0 ? [schema] : [],
      metrics: { tool_calls: 2, tool_errors: 1 },
      ...more,
    });
  const dump = (step: number) =>
    ["sums/0", "sums/1"]
      .map((uid) => conversation(step, uid, 0) + conversation(step, uid, 1, { reward: 0, success: false }))
      .join("");
  const folder = dirname(
    write(`${name}/metrics.jsonl`, '{"training/global_step":1,"loss":0.5}\n{"training/global_step":2}\n'),
  );
  write(`${name}/config.json`, JSON.stringify({ trainer: { total_training_steps: 2 }, secret: hostile }));
  write(`${name}/rollouts/1.jsonl`, dump(1));
  write(`${name}/rollouts/2.jsonl`, dump(2));
  write(`${name}/validation/2.jsonl`, conversation(2, "sums/0", 0, { place: "val.jsonl, line 0" }));
  return folder;
}

function open(folders: string[], { host = "127.0.0.1", token = null as string | null } = {}) {
  const catalog = new RunCatalog(folders, { everyMs: 5 });
  const { app, close } = createViewerApp({ catalog, assets, host, token });
  closers.push(close, () => catalog.close());
  const ask = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    app.request(path, { ...init, headers: { host, ...headers } });
  const get = async <T>(path: string): Promise<T> => {
    const response = await ask(`/api/${path}`);
    expect(response.status, path).toBe(200);
    return (await response.json()) as T;
  };
  return { catalog, ask, get };
}

describe("the viewer's server", () => {
  it("answers every address of its contract", async () => {
    const folder = writeRun("all/p/e");
    const { get } = open([join(root, "all")]);
    expect(await get<RunSummary[]>("runs")).toMatchObject([{ id: "p~e", name: "p/e", step: 2, status: "ended" }]);
    const run = await get<RunDetail>("runs/p~e");
    expect(run).toMatchObject({ config: { secret: hostile }, live: null, findings: [], isShared: false });
    expect(run.dumps.map(({ id }) => id)).toEqual(["1", "2", "validation-2"]);
    expect(JSON.stringify(run)).not.toContain("modified");
    expect(await get("runs/p~e/metrics")).toMatchObject({ steps: [1, 2], columns: { loss: [0.5, null] } });
    expect(await get("runs/p~e/live")).toBeNull();

    // A list answers with the part of the index that is there; a busy machine may be reading it still.
    const list = () => get<GroupPage>("runs/p~e/dumps/1?filter=reward%3C1&sort=reward&down=1&limit=1");
    await expect.poll(async () => (await list()).total).toBe(4);
    const page = await list();
    expect(page).toMatchObject({ matched: 2, matchedGroups: 2, total: 4, selected: [1], groups: [{ uid: "sums/0" }] });
    expect(page.groups[0]!.title).toContain("<script>");
    const group = await get<GroupDetail>("runs/p~e/dumps/1/groups/sums%2F1");
    expect(group).toMatchObject({ group: { uid: "sums/1", reward: 0.5 }, schemas: [schema] });
    expect(group.lines.map(({ sample }) => sample)).toEqual([0, 1]);
    const episode = await get<EpisodeDetail>("runs/p~e/dumps/validation-2/episodes/0");
    expect(episode).toMatchObject({ entry: { line: 0, uid: "sums/0" }, previous: null, next: null, schemas: [schema] });
    expect(await get<EpisodeDetail>("runs/p~e/dumps/1/episodes/2")).toMatchObject({ previous: 1, next: 3 });

    const prompts = await get<PromptEntry[]>("runs/p~e/prompts?search=line%200");
    expect(prompts.map(({ place, times }) => [place, times])).toEqual([
      ["train.jsonl, line 0", 2],
      ["val.jsonl, line 0", 1],
    ]);
    // Groups link to it.
    expect(page.groups[0]!.prompt).toBe(prompts[0]!.id);
    const prompt = await get<PromptDetail>(`runs/p~e/prompts/${prompts[0]!.id}`);
    expect(prompt.appearances).toMatchObject([
      {
        dump: "1",
        step: 1,
        validation: false,
        conversations: [
          { line: 0, reward: 1 },
          { line: 1, reward: 0 },
        ],
      },
      { dump: "2", step: 2 },
    ]);

    const expected: EnvironmentDetail = {
      steps: [2],
      conversations: 4,
      tools: [
        {
          name: "calculator",
          description: "Computes.",
          calls: 4,
          failures: {},
          latency: { median: 30, p95: 30, longest: 30 },
          arguments: [{ name: "expression", bins: [{ label: "2+1", count: 4 }], missing: 0 }],
        },
      ],
      unknown: [{ name: "search", calls: 4 }],
      invalid: 0,
    };
    expect(await get("runs/p~e/environment?from=2&to=9")).toEqual(expected);
    expect(await get("runs/p~e/environment")).toMatchObject({ steps: [1, 2], conversations: 8 });
    appendFileSync(join(folder, "rollouts", "2.jsonl"), makeDumpLine({ uid: "sums/9" }));
    expect(await get("runs/p~e/environment?from=2")).toMatchObject({ conversations: 5 });
  });

  it("reports unknown addresses and wrong parameters", async () => {
    writeRun("unknown/e");
    const { ask } = open([join(root, "unknown")]);
    for (const [path, status, message] of [
      ["runs/none", 404, /none/],
      ["runs/..%2F..%2Fetc", 404, /run/],
      ["runs/e/dumps/9", 404, /dump 9/],
      ["runs/e/dumps/..%2F..%2Fconfig", 404, /dump/],
      ["runs/e/dumps/1/groups/none", 404, /none/],
      ["runs/e/dumps/1/episodes/99", 404, /conversation 99/],
      ["runs/e/dumps/1/episodes/x", 404, /episodes\/x/],
      ["runs/e/prompts/none", 404, /none/],
      ["runs/e/dumps/1?sort=luck", 400, /sort.*reward/],
      ["runs/e/dumps/1?offset=-1", 400, /offset/],
      ["runs/e/dumps/1?filter=rewrd%3C1", 400, /"?reward\b/],
      [`runs/e/dumps/1?search=${"x".repeat(10_001)}`, 400, /search/],
      ["nothing", 404, /GET \/api\/nothing/],
    ] as const) {
      const response = await ask(`/api/${path}`);
      expect(response.status, path).toBe(status);
      const { error } = (await response.json()) as { error: { message: string; remedy: string | null } };
      expect(error.message).toMatch(message);
    }
    expect((await ask("/api/runs", {}, { method: "DELETE" })).status).toBe(404);
  });

  it("gives the pictures that were dumped, by their hashes, and no other file", async () => {
    writeRun("pictures/e");
    const picture = encodePng({ width: 2, height: 2, rgb: new Uint8Array(12) });
    const hash = createHash("sha256").update(picture).digest("hex");
    const images = join(root, "pictures/e/rollouts/images");
    mkdirSync(images);
    writeFileSync(join(images, `${hash}.png`), picture);
    const { ask } = open([join(root, "pictures")]);
    const shown = await ask(`/api/runs/e/images/${hash}.png`);
    expect(new Uint8Array(await shown.arrayBuffer())).toEqual(Uint8Array.from(picture));
    expect(Object.fromEntries(shown.headers)).toMatchObject({
      "content-type": "image/png",
      "cache-control": "private, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    });
    writeFileSync(join(images, `${hash}.webp`), picture);
    expect((await ask(`/api/runs/e/images/${hash}.webp`)).headers.get("content-type")).toBe("image/webp");
    // A file that does not match its name, also one behind a link.
    writeFileSync(join(images, `${"a".repeat(64)}.png`), "a page");
    symlinkSync(join(root, "pictures/e/config.json"), join(images, `${"b".repeat(64)}.png`));
    mkdirSync(join(images, `${"c".repeat(64)}.png`));
    for (const name of [
      `${"a".repeat(64)}.png`,
      `${"b".repeat(64)}.png`,
      `${"c".repeat(64)}.png`,
      `${"d".repeat(64)}.png`,
      `${hash}.svg`,
      `${hash.toUpperCase()}.png`,
      `${hash}.png%00`,
      `..%2F1.jsonl`,
      `..%2F..%2Fconfig.json`,
    ])
      expect((await ask(`/api/runs/e/images/${name}`)).status, name).toBe(404);
    expect((await ask(`/api/runs/f/images/${hash}.png`)).status).toBe(404);
  });

  it("gives the reason if there is no model to ask", async () => {
    writeRun("no-model/e");
    const { ask } = open([join(root, "no-model")]);
    const post = (path: string) => ask(`/api/runs/e/dumps/${path}`, {}, { method: "POST", body: '{"token":2}' });
    const response = await post("1/episodes/0/alternatives");
    expect(response.status).toBe(404);
    expect(((await response.json()) as ApiError).error.message).toMatch(/no-model\/e: .*config\.json/);
    expect((await post("1/episodes/77/alternatives")).status).toBe(404);
    expect((await post("9/episodes/0/alternatives")).status).toBe(404);
  });

  it("serves the app's files alone, with headers that keep text of models from running", async () => {
    const { ask } = open([root]);
    const page = await ask("/?token=x");
    expect(await page.text()).toContain("the app");
    expect(page.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect((await ask("/assets/app-1.js")).headers.get("cache-control")).toContain("immutable");
    for (const path of ["/assets/../../package.json", "/%2e%2e/%2e%2e/etc/passwd", "/assets//etc/passwd", "/x"]) {
      const response = await ask(path);
      expect(response.status, path).toBe(404);
      expect(response.headers.get("content-type")).toContain("json");
    }
    for (const path of ["/", "/api/runs", "/api/none"]) {
      const { headers } = await ask(path);
      expect(headers.get("x-content-type-options"), path).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    }
    expect(() => readAssets(join(root, "nowhere"))).toThrow(
      expect.objectContaining({ code: "config/no-viewer", subject: "the viewer's web app" }),
    );
  });

  it("accepts requests of its own pages alone", async () => {
    const { ask } = open([root]);
    const status = async (headers: Record<string, string>) => (await ask("/api/runs", headers)).status;
    expect(await status({ host: "127.0.0.1:7411", origin: "http://127.0.0.1:7411" })).toBe(200);
    expect(await status({ host: "localhost:7411", "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await status({ host: "evil.example:7411" })).toBe(403);
    expect(await status({ host: "127.0.0.1:7411", origin: "https://evil.example" })).toBe(403);
    expect(await status({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe(403);
    expect(await status({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" })).toBe(200);
  });

  it("asks other machines for its token, and keeps it in a cookie", async () => {
    const { ask } = open([root], { host: "0.0.0.0", token: "t0ken" });
    for (const path of ["/", "/api/runs", "/api/runs?token=other", "/api/runs?token="]) {
      const response = await ask(path);
      expect(response.status, path).toBe(401);
      expect(response.headers.get("set-cookie")).toBeNull();
    }
    const first = await ask("/?token=t0ken");
    expect(first.status).toBe(200);
    expect(first.headers.get("set-cookie")).toBe("cria-view=t0ken; Path=/; HttpOnly; SameSite=Strict");
    expect((await ask("/api/runs", { cookie: "a=b; cria-view=t0ken" })).status).toBe(200);
    expect((await ask("/api/runs", { cookie: "cria-view=t0ke" })).status).toBe(401);
  });

  it("shows empty, damaged and removed runs", async () => {
    write("odd/empty/config.json", '{"trainer":{}}');
    write("odd/damaged/metrics.jsonl", "{\n");
    write("odd/damaged/config.json", "{");
    const dump = write("odd/damaged/rollouts/1.jsonl", `no JSON\n${makeDumpLine()}{"cut`);
    const { get, ask } = open([join(root, "odd")]);
    const runs = await get<RunSummary[]>("runs");
    expect(runs.map(({ id, status }) => [id, status]).sort()).toEqual([
      ["damaged", "stale"],
      ["empty", "empty"],
    ]);
    expect(await get("runs/empty/metrics")).toEqual({ heldOut: [], steps: [], seconds: [], tokens: [], columns: {} });
    expect(await get("runs/empty/environment")).toMatchObject({ steps: [], tools: [] });
    expect(await get("runs/damaged")).toMatchObject({ config: null, summary: { trouble: /damaged/ } as never });
    const shown = { total: 1, groups: [{ conversations: [{ line: 1 }] }] };
    await expect.poll(() => get("runs/damaged/dumps/1")).toMatchObject(shown);
    expect((await ask("/api/runs/damaged/dumps/1/episodes/0")).status).toBe(404);
    await get("runs/damaged/dumps/1/episodes/1");
    rmSync(dump);
    expect((await ask("/api/runs/damaged/dumps/1")).status).toBe(404);
    rmSync(join(root, "odd", "damaged"), { recursive: true });
    expect((await ask("/api/runs/damaged")).status).toBe(404);
  });
});

describe("a viewer that listens", () => {
  /** Events of a socket, as they come; `until` waits for one that matches. */
  async function follow(url: string) {
    const events: ViewerEvent[] = [];
    let wake = () => {};
    let rest = "";
    const socket = request(`${url}api/events`);
    const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("response", (response) => {
        resolve(response.headers);
        response.on("error", () => undefined);
        response.on("data", (chunk: Buffer) => {
          const parts = (rest + chunk.toString()).split("\n\n");
          rest = parts.pop()!;
          for (const part of parts)
            if (part.startsWith("data: ")) events.push(JSON.parse(part.slice(6)) as ViewerEvent);
          wake();
        });
      });
      socket.end();
    });
    closers.push(() => socket.destroy());
    const until = async (isIt: (event: ViewerEvent) => boolean): Promise<ViewerEvent> => {
      for (;;) {
        const found = events.find(isIt);
        if (found) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    return { headers, until, events };
  }

  it("reports new, growing and removed runs", async () => {
    const folder = writeRun("live/e");
    const viewer = await listenViewer({
      folders: [join(root, "live")],
      host: "127.0.0.1",
      port: 0,
      assets,
      everyMs: 20,
    });
    closers.push(viewer.close);
    const { headers, until } = await follow(viewer.url);
    expect(headers["content-type"]).toContain("text/event-stream");
    await until((event) => event.type === "run" && event.summary.id === "e");
    appendFileSync(join(folder, "metrics.jsonl"), '{"training/global_step":3}\n');
    await until((event) => event.type === "metrics" && event.step === 3);
    write("live/e/rollouts/3.jsonl", makeDumpLine({ step: 3 }));
    await until((event) => event.type === "dump" && event.dump === "3");
    writeRun("live/f");
    await until((event) => event.type === "run" && event.summary.id === "f");
    const live = { at: Date.now(), process: process.pid, step: 4, total: 9, phase: "rollout", tokens_per_second: 1 };
    const counts = { done: 0, generating: 1, waiting_for_tools: 0, total: 1 };
    const waits = { waiting_for_tools: 0, waiting_for_groups: 0 };
    const seconds = { decoding: 1, ...waits, scoring: 0, training: 0, validation: 0, other: 0 };
    write(
      "live/e/live.json",
      JSON.stringify({ format_version: 2, ...live, conversations: counts, seconds, staleness: 0, eta: null }),
    );
    await until((event) => event.type === "live" && event.live?.step === 4);
    rmSync(join(root, "live", "e"), { recursive: true });
    await until((event) => event.type === "removed" && event.run === "e");
  });

  it("takes another port if its own is taken, prints a token beyond loopback, and ends at once", async () => {
    const options = { folders: [root], host: "127.0.0.1", assets };
    const first = await listenViewer({ ...options, port: null });
    closers.push(first.close);
    const second = await listenViewer({ ...options, port: null });
    expect(second.url).not.toBe(first.url);
    const { port } = new URL(second.url);
    await expect(listenViewer({ ...options, port: Number(port) })).rejects.toMatchObject({
      code: "config/cannot-listen",
      received: "a port that is in use",
    });
    const { headers } = await follow(second.url);
    expect(headers["x-content-type-options"]).toBe("nosniff");
    await second.close();
    await expect(fetch(second.url)).rejects.toThrow();
    const open = await listenViewer({ ...options, host: "0.0.0.0", port: 0 });
    closers.push(open.close);
    expect(open.url).toMatch(/^http:\/\/0\.0\.0\.0:\d+\/\?token=[\w-]{32}$/);
  });
});
