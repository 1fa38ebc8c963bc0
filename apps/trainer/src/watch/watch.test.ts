import { once } from "node:events";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import type { ClusterView, LiveState, WorkerView } from "@cria/viewer/api";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { drawView, panes } from "./draw-view.js";
import { drawWorkers } from "./draw-workers.js";
import { ViewReader } from "./read-view.js";
import { watchAsLines, watchOnScreen } from "./watch-run.js";

const work = mkdtempSync(join(tmpdir(), "cria-watch-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

const dumps = join(import.meta.dirname, "../../../../packages/records/fixtures/dumps");

let count = 0;

/** A run of this many steps, with the conversations of a real one. */
function writeRun(steps: number, change: (line: Record<string, unknown>) => void = () => undefined): string {
  const folder = join(work, `run-${count++}`);
  mkdirSync(join(folder, "rollouts"), { recursive: true });
  writeFileSync(join(folder, "config.json"), JSON.stringify({ trainer: { total_training_steps: 9 } }));
  const metrics = Array.from({ length: steps }, (_, i) => ({
    "training/global_step": i + 1,
    "rollout/kept": 4,
    "reward/score/mean": (i + 1) / 10,
    "critic/rewards/mean": (i + 1) / 10,
    "actor/pg_loss": -i,
    "tool_call_counts/mean": 0.5,
    "agent_loop/tool_error_rate": 0.25,
    "perf/throughput": 12_345,
  }));
  writeFileSync(join(folder, "metrics.jsonl"), metrics.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const lines = readFileSync(join(dumps, "version-2-train.jsonl"), "utf8").trim().split("\n");
  const changed = lines.map((text) => {
    const line = JSON.parse(text) as Record<string, unknown>;
    change(line);
    return `${JSON.stringify(line)}\n`;
  });
  writeFileSync(join(folder, "rollouts", `${steps}.jsonl`), changed.join(""));
  return folder;
}

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";

/** A terminal of 80 columns and 24 lines that the test types into. */
function openTerminal(folder: string, size = { columns: 80, rows: 24 }) {
  const input = Object.assign(new PassThrough(), { isRaw: false, setRawMode: vi.fn() });
  const output = Object.assign(new PassThrough(), size);
  const end = new AbortController();
  let screen = "";
  output.on("data", (text) => {
    screen += text;
  });
  const ended = watchOnScreen(folder, { input: input as never, output: output as never, signal: end.signal });
  const waitFor = async (text: string) => {
    while (!screen.includes(text)) await once(output, "data");
    return screen;
  };
  return { input, output, ended, end, waitFor, read: () => screen };
}

describe("cria watch in a terminal", () => {
  it("draws on a page of its own, changes panes by keys, and restores the terminal on q", async () => {
    const terminal = openTerminal(writeRun(3));
    await terminal.waitFor("[1 overview]");
    expect(terminal.read().startsWith(ENTER)).toBe(true);
    expect(terminal.input.setRawMode).toHaveBeenLastCalledWith(true);
    for (const [key, pane] of [
      ["2", "[2 groups]"],
      ["\t", "[3 conversation]"],
      ["\x1b[C", "[4 tools]"],
      ["\x1b[D", "[3 conversation]"],
    ]) {
      terminal.input.write(key!);
      await terminal.waitFor(pane!);
    }
    terminal.input.write("q");
    await terminal.ended;
    expect(terminal.read().endsWith(LEAVE)).toBe(true);
    expect(terminal.input.setRawMode).toHaveBeenLastCalledWith(false);
    expect(terminal.input.listenerCount("data")).toBe(0);
  });

  it("restores it on Ctrl-C, when it is ended from outside, and when reading fails", async () => {
    const typed = openTerminal(writeRun(2));
    await typed.waitFor("overview");
    typed.input.write("\x03");
    await typed.ended;
    const ended = openTerminal(writeRun(2));
    await ended.waitFor("overview");
    ended.end.abort();
    await ended.ended;
    const failing = openTerminal(writeRun(2));
    await failing.waitFor("overview");
    vi.spyOn(ViewReader.prototype, "refresh").mockRejectedValue(new Error("broken"));
    await expect(failing.ended).rejects.toThrow("broken");
    for (const { read } of [typed, ended, failing]) expect(read().endsWith(LEAVE)).toBe(true);
  });

  it("restores it when the process ends suddenly", async () => {
    const before = process.listeners("exit");
    const terminal = openTerminal(writeRun(2));
    await terminal.waitFor("overview");
    const [added] = process.listeners("exit").filter((listener) => !before.includes(listener));
    (added as () => void)();
    expect(terminal.read().endsWith(LEAVE)).toBe(true);
    terminal.end.abort();
    await terminal.ended;
    expect(process.listeners("exit")).toEqual(before);
  });

  it("shows steps as they come, and writes only the lines that changed", async () => {
    const folder = writeRun(3);
    const terminal = openTerminal(folder);
    await terminal.waitFor("3/9");
    const seen = terminal.read().length;
    cpSync(writeRun(4), folder, { recursive: true });
    await terminal.waitFor("4/9");
    expect(terminal.read().slice(seen)).not.toContain("\x1b[2J");
    terminal.input.write("q");
    await terminal.ended;
  });
});

describe("the screen", () => {
  it.each([
    [80, 24],
    [40, 10],
    [200, 60],
  ])("fits into %i columns and %i lines, in every pane", async (width, height) => {
    const view = await new ViewReader(writeRun(5)).refresh();
    for (const pane of panes) {
      const lines = drawView(view, { width, height, pane, scroll: 3 }).map(stripVTControlCharacters);
      expect(lines).toHaveLength(height);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
    }
  });

  it("has success, loss, rewards, a conversation, tools and problems", async () => {
    const view = await new ViewReader(writeRun(5)).refresh();
    const text = stripVTControlCharacters(
      drawView(view, { width: 80, height: 24, pane: "overview", scroll: 0 }).join("\n"),
    );
    for (const part of [
      "5/9",
      "success in training 0.5",
      "loss -4",
      "rewards of step 5",
      "worst (reward",
      "25.0 % fail",
    ])
      expect(text).toContain(part);
    expect(text).toMatch(/[⠁-⣿]/);
    const groups = (rewards: number[]) =>
      drawView(
        { ...view, newest: { ...view.newest!, groups: [{ uid: "a", rewards }] } },
        { width: 80, height: 24, pane: "groups", scroll: 0 },
      );
    expect(stripVTControlCharacters(groups([0, 0.5]).join("\n"))).toContain("rewards of step 5: · is 0, ⣿ is 0.5");
    expect(stripVTControlCharacters(groups([0, 0]).join("\n"))).toContain("rewards of step 5: all are 0");
  });

  it("has control characters of models and folders written out", async () => {
    const folder = writeRun(2, (line) => {
      line.uid = "\x1b[2Jrow";
      line.messages = [
        { role: "user", content: "\x1b]0;title\x07" },
        { role: "assistant", content: "\x1b[31mred\u202e\r" },
      ];
      line.prompt_messages = 1;
    });
    const view = await new ViewReader(folder).refresh();
    for (const pane of panes) {
      const text = drawView(view, { width: 80, height: 24, pane, scroll: 0 }).join("\n");
      for (const harmful of ["\x1b[2J", "\x1b]0", "\x07", "\u202e", "\r"]) expect(text).not.toContain(harmful);
    }
    expect(drawView(view, { width: 80, height: 24, pane: "overview", scroll: 0 }).join("\n")).toContain("\\x1b[31mred");
  });

  it("exists for empty, damaged and missing runs too", async () => {
    const empty = join(work, "empty");
    mkdirSync(empty);
    const damaged = writeRun(2);
    writeFileSync(join(damaged, "metrics.jsonl"), "{nonsense\n");
    writeFileSync(join(damaged, "rollouts", "2.jsonl"), "\u0000\u0001");
    for (const folder of [empty, damaged, join(work, "none")]) {
      const view = await new ViewReader(folder).refresh();
      for (const pane of panes) expect(drawView(view, { width: 80, height: 24, pane, scroll: 0 })).toHaveLength(24);
    }
  });
});

describe("cria watch without a terminal", () => {
  it("writes a line for each step until the run is over, as text or JSON", async () => {
    const folder = writeRun(3);
    const lines: string[] = [];
    const signal = new AbortController().signal;
    await watchAsLines(folder, (line) => lines.push(line), { json: false, signal });
    expect(lines).toEqual(
      [1, 2, 3].map((i) => `step ${i}/9  reward 0.${i}00  success 0.${i}00  tok/s 12.3k  tool errors 25.0 %`),
    );
    lines.length = 0;
    await watchAsLines(folder, (line) => lines.push(line), { json: true, signal });
    expect(lines.map((line) => JSON.parse(line)["training/global_step"])).toEqual([1, 2, 3]);
  });
});

const live: LiveState = {
  at: Date.now(),
  process: process.pid,
  step: 6,
  total: 9,
  phase: "rollout",
  conversations: { done: 3, generating: 4, waitingForTools: 5, total: 12 },
  tokensPerSecond: 1234,
  seconds: {
    decoding: 1,
    waitingForTools: 0,
    waitingForGroups: 0,
    scoring: 0,
    training: 0,
    validation: 0,
    other: 0,
  },
  staleness: 0,
  eta: 75,
  cluster: null,
};

it("a run that is running has its phase, speed, conversations and the time that is left", async () => {
  const folder = writeRun(5);
  const view = { ...(await new ViewReader(folder).refresh()), live };
  const [, line] = drawView(view, { width: 100, height: 24, pane: "overview", scroll: 0 }).map(
    stripVTControlCharacters,
  );
  expect(line).toContain("rollout · ETA 1m15s · 1.2k tok/s · 3/12 conversations · 5 wait for tools");
});

describe("workers of a run that shares its work", () => {
  const none = { rollout: 0, score: 0, gradient: 0 };
  const worker: WorkerView = {
    id: "barn",
    host: "barn",
    class: "a",
    state: "ready",
    reason: null,
    slots: { ...none, rollout: 4 },
    doing: none,
    done: { ...none, rollout: 40, score: 2 },
    failed: 0,
    lastFailure: null,
    oldest: 0,
    declined: 0,
    rate: 1,
    audits: { passed: 4, failed: 0 },
  };
  const cluster: ClusterView = {
    bus: "nats://barn:4222",
    coordinator: "barn/1",
    term: 1,
    class: "a",
    policy: { version: 1, bytes: 1, seconds: 1 },
    workers: [worker],
    here: { ...none, gradient: 7 },
    jobs: { outstanding: 0, waiting: 0, redelivered: 3, abandoned: 0, conflicts: 0 },
    traffic: { policy: 0, gradients: 0, jobs: 0 },
  };
  const draw = (view: ClusterView) => drawWorkers(view).map(stripVTControlCharacters);

  it("are counted, with their work", () => {
    expect(draw(cluster)).toEqual(["workers 1 ready · no audit failed · 7 jobs here, 42 elsewhere · 3 redelivered"]);
  });

  it("that are shut out are named with the reason, as text, and so are errors", () => {
    const out = Array.from({ length: 5 }, (_, i): WorkerView => ({ ...worker, id: `w${i}`, state: "shut-out" }));
    out[0] = { ...out[0]!, reason: "its logprobs\x1b[2J differ", audits: { passed: 4, failed: 1 } };
    expect(draw({ ...cluster, workers: out, jobs: { ...cluster.jobs, abandoned: 2 } })).toEqual([
      "workers 0 ready · 1 of 21 audits FAILED · 7 jobs here, 210 elsewhere · 3 redelivered · 2 lost, done here",
      "shut out: w0 (its logprobs\\x1b[2J differ), w1, w2, 2 more",
    ]);
  });

  it("that fail or are stuck are named with their details, as text", () => {
    const failing: WorkerView = { ...worker, state: "failing", lastFailure: "rollout: no memory\x1b[2J", failed: 5 };
    const stuck: WorkerView = { ...worker, id: "rack", state: "stuck", oldest: 300 };
    expect(draw({ ...cluster, workers: [failing, stuck] })).toEqual([
      "workers 0 ready · no audit failed · 7 jobs here, 84 elsewhere · 3 redelivered",
      "failing: barn (rollout: no memory\\x1b[2J)",
      "stuck: rack (its oldest job has 300 s)",
    ]);
  });

  it("are on the overview, and in the lines of steps", async () => {
    const folder = writeRun(2);
    const view = { ...(await new ViewReader(folder).refresh()), live: { ...live, cluster } };
    const screen = drawView(view, { width: 100, height: 24, pane: "overview", scroll: 0 }).map(
      stripVTControlCharacters,
    );
    expect(screen.join("\n")).toContain("workers 1 ready");
    const line = { "training/global_step": 3, "cluster/workers": 4, "cluster/audits_failed": 1 };
    appendFileSync(join(folder, "metrics.jsonl"), `${JSON.stringify(line)}\n`);
    const lines: string[] = [];
    await watchAsLines(folder, (text) => lines.push(text), { json: false, signal: new AbortController().signal });
    expect(lines[2]).toBe("step 3/9  workers 4  audits failed 1");
  });
});
