import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { amount } from "@cria/core/testing";
import { BaseInteraction, BaseTool, defineToolSchema, type ToolResult } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { makeFakeRollout, makeRow } from "../testing/index.js";

const conversations = amount(700, 2000);
const megabyte = 1_000_000;
const behaviours = ["sleep", "fail", "hang", "megabyte", "megabyte_error", "slow_create", "fine"] as const;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

class UnrulyTool extends BaseTool {
  created = 0;
  released = 0;
  constructor() {
    super(defineToolSchema("act", "Misbehaves.", z.object({ how: z.string() })));
  }
  override async create(instanceId: string, { createKwargs }: { createKwargs?: Record<string, unknown> } = {}) {
    this.created++;
    if (createKwargs?.how === "slow_create") await sleep(50);
    return { instanceId };
  }
  override async execute(_id: string, { how }: Record<string, unknown>): Promise<ToolResult> {
    // Each text is a separate string, so that the heap shows any that a trajectory keeps alive.
    const big = () => String.fromCharCode(97 + Math.floor(Math.random() * 26)).repeat(megabyte);
    if (how === "sleep") await sleep(5 + Math.random() * 40);
    if (how === "hang") await new Promise(() => undefined);
    if (how === "fail") throw new Error("broken");
    if (how === "megabyte_error") throw new Error(big());
    return { response: { text: how === "megabyte" ? big() : "fine" }, reward: 0.1, metrics: {} };
  }
  override async release() {
    this.released++;
  }
}

class Feedback extends BaseInteraction {
  started = 0;
  finalized = 0;
  override async startInteraction() {
    this.started++;
  }
  override async generateResponse(_id: string, messages: readonly unknown[]) {
    await sleep(Math.random() * 10);
    return { shouldTerminate: messages.length > 6, content: "and now?", score: 0.1 };
  }
  override async finalizeInteraction() {
    this.finalized++;
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const heapMegabytes = () => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Delays between ticks of a timer, each no longer than the CPU time that this process used in it. */
class OwnDelay {
  private readonly delays: number[] = [];
  private last = { at: performance.now(), cpu: process.cpuUsage() };
  private readonly timer = setInterval(() => this.tick(), 10);

  private tick(): void {
    const next = { at: performance.now(), cpu: process.cpuUsage() };
    const cpu = next.cpu.user + next.cpu.system - this.last.cpu.user - this.last.cpu.system;
    this.delays.push(Math.min(next.at - this.last.at, cpu / 1000));
    this.last = next;
  }

  /** The 99th percentile, in milliseconds. */
  stop(): number {
    clearInterval(this.timer);
    this.delays.sort((a, b) => a - b);
    return this.delays[Math.floor(this.delays.length * 0.99)]!;
  }
}

function makeLoad() {
  const tool = new UnrulyTool();
  const feedback = new Feedback({}, "test");
  const rollout = makeFakeRollout({
    // Turns alternate: a call, a comment on its answer, a user's question, and so on. The row determines the tool's
    // behaviour.
    reply: ({ turn, text }) => {
      const how = /do (\w+)/.exec(text)![1];
      return turn % 2 === 0
        ? `I act. <tool_call>{"name": "act", "arguments": {"how": "${how}"}}</tool_call>`
        : `That was turn ${turn}.`;
    },
    engine: { latencyMs: ({ turn }) => 1 + ((turn * 7919) % 20), maxSequences: conversations },
    tools: [tool],
    interactions: [feedback],
    multiTurn: { toolTimeoutS: 0.5, maxToolResponseLength: 64 },
    concurrency: conversations,
    reward: () => 1,
  });
  const rows = Array.from({ length: conversations }, (_, i) => {
    const how = behaviours[i % behaviours.length]!;
    return makeRow(
      {
        prompt: [{ role: "user", content: `do ${how}` }],
        extra_info: { tools_kwargs: { act: { create_kwargs: { how } } } },
      },
      i,
    );
  });
  return { ...rollout, rows, tool, feedback };
}

describe("load", () => {
  it(`${conversations} conversations at once: all end in a record, nothing leaks, and the event loop stays free`, async () => {
    // The first conversations include compilation and loading of templates, which are not measured.
    const warm = makeLoad();
    await warm.run(warm.rows.slice(0, 100));

    const { engine, run, rows, tool, feedback } = makeLoad();
    const before = heapMegabytes();
    const residentBefore = process.memoryUsage().rss / 2 ** 20;
    let residentMost = residentBefore;
    const watch = setInterval(() => {
      residentMost = Math.max(residentMost, process.memoryUsage().rss / 2 ** 20);
    }, 20);
    const delay = monitorEventLoopDelay({ resolution: 10 });
    const ownDelay = new OwnDelay();
    delay.enable();
    const started = performance.now();
    const cpuBefore = process.cpuUsage();
    const trajectories = await run(rows);
    const seconds = (performance.now() - started) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    const cpuSeconds = (cpu.user + cpu.system) / 1e6;
    delay.disable();
    const own = ownDelay.stop();
    clearInterval(watch);
    const kept = heapMegabytes() - before;

    expect(trajectories).toHaveLength(conversations);
    for (const t of trajectories) {
      expect(t.error).toBeUndefined();
      expect(t.timeline!.request.at(-1)!.state).toBe("completed");
      expect(t.timeline!.loop.at(-1)!.state).toBe("terminated");
      expect(t.metrics.tool_calls).toBe(2);
      expect(t.numTurns).toBe(8);
    }
    const total = (name: string) => trajectories.reduce((sum, t) => sum + (t.metrics[name] ?? 0), 0);
    const having = (...names: string[]) =>
      rows.filter((_, i) => names.includes(behaviours[i % behaviours.length]!)).length;
    expect(total("tool_timeout")).toBe(2 * having("hang"));
    expect(total("tool_exception")).toBe(2 * having("fail", "megabyte_error"));
    expect(total("tool_truncated")).toBe(2 * having("megabyte", "megabyte_error"));

    expect(tool.created).toBe(conversations);
    expect(tool.released).toBe(conversations);
    expect(feedback.started).toBe(conversations);
    expect(feedback.finalized).toBe(conversations);
    expect(engine.counts.created).toBe(conversations);
    expect(engine.counts.disposed).toBe(conversations);
    expect(engine.counts.inFlight).toBe(0);

    const p99 = delay.percentile(99) / 1e6;
    const loop = `p50 ${(delay.percentile(50) / 1e6).toFixed(1)} ms p99 ${p99.toFixed(1)} ms max ${(delay.max / 1e6).toFixed(1)} ms`;
    const report = `${seconds.toFixed(1)} s (CPU ${cpuSeconds.toFixed(1)} s), event loop ${loop} (p99 without the time of other processes ${own.toFixed(1)} ms), heap kept ${kept.toFixed(0)} MB, RSS ${residentBefore.toFixed(0)} -> ${residentMost.toFixed(0)} MB`;
    process.stderr.write(`load: ${report}\n`);
    // On a busy machine, pauses include the time of other processes; then only this process's part counts.
    expect(Math.min(p99, own), report).toBeLessThan(50);
    // A trajectory takes about 10 KB; a leaked text in each of 571 trajectories would take 571 MB.
    expect(kept, report).toBeLessThan(100);
    expect(residentMost - residentBefore, report).toBeLessThan(500);
  });
});
