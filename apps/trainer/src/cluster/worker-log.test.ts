import type { WorkerStatus } from "@cria/cluster";
import { afterEach, expect, it, vi } from "vitest";
import { WorkerLog } from "./worker-log.js";

afterEach(() => vi.restoreAllMocks());

const status = (change: Partial<WorkerStatus> = {}): WorkerStatus => ({
  id: "w1",
  state: "waiting",
  run: null,
  class: "",
  kinds: [],
  lacks: [],
  done: 0,
  failed: 0,
  ...change,
});
const works: Partial<WorkerStatus> = {
  state: "working",
  run: "ab".repeat(32),
  class: "c1",
  kinds: ["score", "gradient"],
};

function open(options: { json?: boolean; isTerminal?: boolean } = {}) {
  const written: string[] = [];
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const add = (text: string) => void written.push(text);
  const log = new WorkerLog("nats://host:4222", { json: false, isTerminal: false, write: add, print: add, ...options });
  const wait = (ms: number) => {
    now += ms;
  };
  return { log, written, wait };
}

it("a worker says what it does in a few lines", () => {
  const { log, written } = open();
  log.show(status());
  log.show(status({ state: "preparing", run: "ab".repeat(32) }));
  log.show(status(works));
  for (let done = 1; done <= 100; done++) log.show(status({ ...works, done }));
  log.show(status({ ...works, kinds: [], done: 100, lacks: ["the model"] }));
  log.show(status({ ...works, kinds: [], state: "left", done: 100, failed: 2 }));
  log.end();
  expect(written).toEqual([
    "worker w1 is on nats://host:4222, and waits for a training\n",
    "worker w1 prepares for training abababababab\n",
    "worker w1 does jobs of training abababababab: score, gradient (class c1)\n",
    "worker w1 cannot help training abababababab\n",
    "worker w1 has left: 100 jobs done, 2 failed\n",
  ]);
});

it("on a terminal the jobs of the last minute are counted in one line", () => {
  const { log, written, wait } = open({ isTerminal: true });
  log.show(status(works));
  log.show(status({ ...works, done: 3 }));
  log.show(status({ ...works, done: 4 }));
  wait(61_000);
  log.show(status({ ...works, done: 5, failed: 1 }));
  log.end();
  expect(written.slice(1)).toEqual([
    expect.stringContaining("3 jobs done, 3 in the last minute"),
    expect.stringContaining("5 jobs done, 1 in the last minute, 1 failed"),
    "\r\x1b[K",
  ]);
});

it("for programs each change is a line of JSON", () => {
  const { log, written } = open({ json: true, isTerminal: true });
  log.show(status());
  log.show(status(works));
  log.show(status({ ...works, done: 1 }));
  expect(written.map((line) => JSON.parse(line))).toEqual([status(), status(works)]);
});
