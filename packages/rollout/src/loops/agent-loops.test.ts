import { join } from "node:path";
import { EngineError, type Trajectory } from "@cria/core";
import { BaseInteraction, BaseTool, defineToolSchema, type ToolResult } from "@cria/tools";
import { provideHostModules } from "@cria/tools/internal";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { agentLoops, loadAgentLoops, registerAgentLoop } from "../index.js";
import { makeFakeRollout, makeRow } from "../testing/index.js";
import { createAgentLog, createRequestLog } from "./state-log.js";

interface Calls {
  created: number;
  released: number;
  kwargs: Record<string, unknown>[];
}

/** Counts its instances; its argument determines its behaviour. */
class CountingTool extends BaseTool {
  readonly calls: Calls = { created: 0, released: 0, kwargs: [] };
  constructor(
    private readonly more: {
      create?: () => Promise<void>;
      release?: () => Promise<void>;
      id?: string;
      name?: string;
    } = {},
  ) {
    super(defineToolSchema(more.name ?? "wait", "Waits.", z.object({ ms: z.number() })));
  }
  override async create(id: string, options = {}) {
    this.calls.created++;
    this.calls.kwargs.push(options);
    await this.more.create?.();
    return { instanceId: this.more.id ?? id };
  }
  override async execute(id: string, { ms }: Record<string, unknown>, options = {}): Promise<ToolResult> {
    this.calls.kwargs.push({ id, ...options });
    await new Promise((resolve) => setTimeout(resolve, ms as number));
    return { response: { text: `waited ${ms}` }, reward: 0, metrics: { waited: ms as number } };
  }
  override async calcReward(_id: string, kwargs = {}) {
    this.calls.kwargs.push(kwargs);
    return 0.5;
  }
  override async release(_id: string, kwargs = {}) {
    this.calls.released++;
    this.calls.kwargs.push(kwargs);
    await this.more.release?.();
  }
}

type Behaviour = Partial<Record<"start" | "reply" | "score" | "finalize", () => unknown>>;

class Recorder extends BaseInteraction {
  readonly calls: string[] = [];
  readonly kwargs: Record<string, unknown>[] = [];
  constructor(
    name: string,
    private readonly behave: Behaviour = {},
  ) {
    super({}, name);
  }
  override async startInteraction(_id: string, kwargs = {}) {
    this.calls.push("start");
    this.kwargs.push(kwargs);
    await this.behave.start?.();
  }
  override async generateResponse(_id: string, _messages: readonly unknown[], kwargs = {}) {
    this.calls.push("reply");
    this.kwargs.push(kwargs);
    return ((await this.behave.reply?.()) ?? { shouldTerminate: true, content: "bye", score: 1 }) as never;
  }
  override async calculateScore() {
    this.calls.push("score");
    return ((await this.behave.score?.()) ?? 0.5) as number;
  }
  override async finalizeInteraction() {
    this.calls.push("finalize");
    await this.behave.finalize?.();
  }
}

const call = (ms: number) => `<tool_call>${JSON.stringify({ name: "wait", arguments: { ms } })}</tool_call>`;
const states = (log: readonly { state: string }[]) => log.map((entry) => entry.state);
const never = () => new Promise<never>(() => undefined);

describe("state machines", () => {
  it("record each transition with its time, for the loop and for the request", async () => {
    const { run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? call(5) : `answer ${turn}`),
      tools: [new CountingTool()],
      interactions: [new Recorder("test")],
      engine: { latencyMs: 2 },
    });
    const [t] = await run();
    const { loop, request, turns } = t!.timeline!;
    expect(states(loop)).toEqual([
      "pending",
      "generating",
      "processing_tools",
      "generating",
      "interacting",
      "terminated",
    ]);
    expect(states(request)).toEqual(["pending", "running", "tool_calling", "running", "interacting", "completed"]);
    for (const log of [loop, request]) {
      const times = log.map((entry) => entry.at);
      expect(times).toEqual([...times].sort((a, b) => a - b));
      expect(Math.abs(times[0]! - Date.now())).toBeLessThan(60_000);
    }
    expect(turns.map((turn) => turn.role)).toEqual(["assistant", "tool", "assistant"]);
    expect(turns[0]!.start).toBe(t!.promptLength);
    for (let i = 1; i < turns.length; i++) {
      expect(turns[i]!.start).toBe(turns[i - 1]!.end);
      expect(turns[i]!.startedAt).toBeGreaterThanOrEqual(turns[i - 1]!.startedAt);
    }
    for (const turn of turns) expect(turn.endedAt - turn.startedAt).toBeGreaterThan(1);
    expect(turns.at(-1)!.end).toBe(t!.tokenIds.length);
    expect(t!.numTurns).toBe(4);
  });

  it("refuse impossible transitions", () => {
    const loop = createAgentLog();
    expect(() => loop.enter("interacting")).toThrow(
      expect.objectContaining({ code: "rollout/illegal-transition", received: "interacting" }),
    );
    const request = createRequestLog();
    request.enter("failed");
    expect(() => request.enter("running")).toThrow(
      expect.objectContaining({ code: "rollout/illegal-transition", received: "running" }),
    );
  });
});

describe("runRollouts", () => {
  it("a slow tool holds up only its own conversation; results keep the order of rows and samples", async () => {
    const order: string[] = [];
    // Slow calls answer once all other conversations have ended. If a slow call delayed the others, the tool's timeout
    // would end the wait.
    class SlowTool extends CountingTool {
      override async execute(id: string, parameters: Record<string, unknown>, options = {}): Promise<ToolResult> {
        while (parameters.ms === 80 && order.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
        return super.execute(id, { ms: 1 }, options);
      }
    }
    const { run } = makeFakeRollout({
      reply: ({ turn, text }) => (turn === 0 ? call(text.includes("slow") ? 80 : 1) : "done"),
      tools: [new SlowTool()],
      multiTurn: { toolTimeoutS: 20 },
      n: 2,
      onTrajectory: (t) => order.push(`${t.rowIndex}.${t.sampleIndex}`),
    });
    const rows = ["slow", "fast", "fast"].map((content, i) => makeRow({ prompt: [{ role: "user", content }] }, i));
    const trajectories = await run(rows);
    expect(trajectories.map((t) => [t.rowIndex, t.sampleIndex])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
      [2, 0],
      [2, 1],
    ]);
    expect(order.slice(-2).sort()).toEqual(["0.0", "0.1"]);
    for (const t of trajectories) expect(t.metrics.tool_timeout ?? 0).toBe(0);
  });

  it("a group's prompt is evaluated once, and its first sample pays: engine/prefill_tokens counts evaluated tokens", async () => {
    const { engine, run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? call(1) : "done"),
      tools: [new CountingTool()],
      n: 3,
    });
    const trajectories = await run([makeRow({}, 0), makeRow({}, 1)]);
    const total = trajectories.reduce((sum, t) => sum + t.metrics.prefill_tokens!, 0);
    expect(total).toBe(engine.counts.prefillTokens);
    expect(trajectories[0]!.metrics.prefill_tokens! - trajectories[1]!.metrics.prefill_tokens!).toBe(
      trajectories[0]!.promptLength,
    );
    expect(engine.counts.created).toBe(6);
    expect(engine.counts.disposed).toBe(6);
  });

  it("never holds more conversations than it may", async () => {
    const { engine, run } = makeFakeRollout({ reply: () => "ok", concurrency: 2, n: 4, engine: { latencyMs: 1 } });
    await run([makeRow({}, 0), makeRow({}, 1)]);
    expect(engine.counts.mostInFlight).toBeLessThanOrEqual(2);
  });

  it("turn limits: a call after the last turn ends with tool_calls; the last answer is judged all the same", async () => {
    const tools = [new CountingTool()];
    const limited = async (multiTurn: object, said: string) =>
      (
        await makeFakeRollout({
          reply: () => said,
          tools,
          interactions: [new Recorder("test", { reply: () => ({ content: "again", score: 1 }) })],
          multiTurn,
        }).run()
      )[0]!;
    expect(await limited({ maxAssistantTurns: 2 }, call(1))).toMatchObject({ finishReason: "tool_calls", numTurns: 4 });
    expect(await limited({ maxUserTurns: 1 }, call(1))).toMatchObject({ finishReason: "tool_calls", numTurns: 4 });
    const judged = await limited({ maxAssistantTurns: 2 }, "answer");
    expect(judged).toMatchObject({ finishReason: "stop", numTurns: 4 });
    expect(judged.turnScores).toHaveLength(2);
  });

  it("single_turn_agent has one turn, no tools in its prompt and no interaction", async () => {
    const recorder = new Recorder("test");
    const { engine, run } = makeFakeRollout({
      reply: () => call(1),
      tools: [new CountingTool()],
      interactions: [recorder],
      defaultAgentLoop: "single_turn_agent",
    });
    const [t] = await run();
    expect(t).toMatchObject({ numTurns: 2, finishReason: "stop" });
    expect(engine.detokenize(t!.tokenIds.slice(0, t!.promptLength))).not.toContain("wait");
    expect(recorder.calls).toEqual([]);
  });

  it("an abort ends all: tools released, interactions finalized, sequences disposed, nothing judged", async () => {
    const controller = new AbortController();
    const tool = new CountingTool();
    const recorder = new Recorder("test", { reply: never });
    const { engine, run } = makeFakeRollout({
      reply: ({ text }) => (text.includes("tool please") ? call(60_000) : "answer"),
      tools: [tool],
      interactions: [recorder],
      multiTurn: { toolTimeoutS: 60 },
      signal: controller.signal,
      reward: () => 1,
    });
    const rows = ["tool please", "talk"].map((content, i) => makeRow({ prompt: [{ role: "user", content }] }, i));
    const running = run(rows);
    // Both conversations wait: one for its tool, one for its interaction.
    await vi.waitFor(() => {
      expect(recorder.calls).toContain("reply");
      expect(tool.calls.kwargs).toContainEqual(expect.objectContaining({ id: expect.anything() }));
    });
    controller.abort(new Error("enough"));
    const trajectories = await running;
    expect(trajectories.map((t) => [t.finishReason, t.reward, t.error])).toEqual([
      ["aborted", 0, undefined],
      ["aborted", 0, undefined],
    ]);
    expect(tool.calls.released).toBe(tool.calls.created);
    expect(recorder.calls.filter((name) => name === "finalize")).toHaveLength(2);
    expect(engine.counts.disposed).toBe(engine.counts.created);
    await expect(run(rows)).rejects.toThrow("enough");
  });
});

describe("failures", () => {
  const fails = async (behave: Behaviour): Promise<[Trajectory, Recorder]> => {
    const recorder = new Recorder("test", behave);
    const hangs = Object.values(behave).includes(never);
    const { engine, run } = makeFakeRollout({
      reply: () => "an answer",
      interactions: [recorder],
      reward: () => 1,
      multiTurn: hangs ? { toolTimeoutS: 0.1 } : {},
    });
    const [t] = await run();
    expect(engine.counts.disposed).toBe(engine.counts.created);
    expect(recorder.calls.filter((name) => name === "start")).toHaveLength(1);
    return [t!, recorder];
  };
  const boom = () => {
    throw new Error("boom");
  };

  it.each<[string, Behaviour, RegExp]>([
    ["start", { start: boom }, /startInteraction of interaction "test"[\s\S]*boom/],
    ["start that hangs", { start: never }, /startInteraction[\s\S]*within 0.1 s/],
    ["reply", { reply: boom }, /generateResponse[\s\S]*boom/],
    ["reply that hangs", { reply: never }, /generateResponse[\s\S]*within 0.1 s/],
    ["reply that is no reply", { reply: () => ({ content: 3 }) }, /content: string/],
  ])("an interaction's %s fails its conversation, which is kept and not trained on", async (_, behave, message) => {
    const [t, recorder] = await fails(behave);
    expect(t.error).toMatch(message);
    expect(t).toMatchObject({ reward: 0, finishReason: "aborted", metrics: { failed: 1 }, turnScores: [] });
    expect(t.responseMask.includes(1)).toBe(false);
    expect(states(t.timeline!.request).at(-1)).toBe("failed");
    expect(states(t.timeline!.loop).at(-1)).toBe("terminated");
    if (behave.start !== never) expect(recorder.calls.at(-1)).toBe("finalize");
  });

  it.each<[string, Behaviour, Record<string, number>]>([
    ["score", { score: boom }, { interaction_score_exception: 1 }],
    ["bad score", { score: () => Number.NaN }, { interaction_bad_score: 1 }],
    ["finalize", { finalize: boom }, { interaction_finalize_exception: 1 }],
    ["finalize that hangs", { finalize: never }, { interaction_finalize_exception: 1 }],
  ])("an interaction's %s is a metric", async (_, behave, metrics) => {
    const [t] = await fails(behave);
    expect(t.error).toBeUndefined();
    // The reward function's 1 and the turn's score of 1.
    expect(t).toMatchObject({ reward: 2, finishReason: "stop", metrics });
  });

  it("a tool that cannot be created says so to every call; it is released whenever its creation ends", async () => {
    let createLate = () => {};
    const late = () =>
      new Promise<void>((resolve) => {
        createLate = resolve;
      });
    for (const [create, reason] of [
      [async () => boom(), "boom"],
      [late, "within 0.1 s"],
    ] as const) {
      const tool = new CountingTool({ create });
      const reply = ({ turn }: { turn: number }) => (turn === 0 ? call(1) : "done");
      const { run } = makeFakeRollout({ reply, tools: [tool], multiTurn: { toolTimeoutS: 0.1 } });
      const [t] = await run();
      expect(t!.messages.find((m) => m.role === "tool")!.content).toMatch(new RegExp(`not available.*${reason}`));
      expect(t!.metrics).toMatchObject({ tool_create_exception: 1, tool_unavailable: 1 });
      createLate();
      await expect.poll(() => tool.calls.released).toBe(1);
      expect(tool.calls).toMatchObject({ created: 1, released: 1 });
    }
  });

  it("a release that throws or hangs is a metric", async () => {
    for (const release of [async () => boom(), never]) {
      const tools = [new CountingTool({ release })];
      const multiTurn = { toolTimeoutS: release === never ? 0.1 : 60 };
      const [t] = await makeFakeRollout({ reply: () => "ok", tools, multiTurn }).run();
      expect(t!.metrics.tool_release_exception).toBe(1);
    }
  });

  it("a loop that throws is a failed trajectory; an error of config or engine ends the whole run", async () => {
    registerAgentLoop("throwing", () => ({
      run: async () => {
        throw new TypeError("a bug in the loop");
      },
    }));
    const { engine, run } = makeFakeRollout({ reply: () => "ok", defaultAgentLoop: "throwing" });
    const [t] = await run();
    expect(t).toMatchObject({ error: "a bug in the loop", reward: 0, finishReason: "aborted" });
    expect(engine.counts.disposed).toBe(engine.counts.created);

    let asked = 0;
    const broken = makeFakeRollout({
      reply: async ({ text }) => {
        asked++;
        if (text.includes("0")) throw new EngineError("is out of memory", { code: "engine/oom", subject: "engine" });
        await new Promise((resolve) => setTimeout(resolve, 5));
        return call(20);
      },
      tools: [new CountingTool()],
    });
    const rows = ["0", "1", "2"].map((content, i) => makeRow({ prompt: [{ role: "user", content }] }, i));
    await expect(broken.run(rows)).rejects.toMatchObject({ code: "engine/oom" });
    // The other conversations would otherwise continue until their budget was used up.
    expect(asked).toBeLessThan(10);
    expect(broken.engine.counts.disposed).toBe(broken.engine.counts.created);
  });

  it("a loop whose arrays do not fit together ends the run", async () => {
    registerAgentLoop("ragged", (context) => ({
      run: async (_, row) => ({
        tokenIds: [...context.promptIds, 1],
        promptLength: context.promptIds.length,
        responseMask: new Uint8Array(1),
        rolloutLogprobs: new Float32Array(1),
        turnScores: [],
        toolRewards: [],
        toolScore: null,
        numTurns: 1,
        metrics: {},
        messages: row.prompt,
        finishReason: "stop",
        extraFields: {},
      }),
    }));
    const { run } = makeFakeRollout({ reply: () => "ok", defaultAgentLoop: "ragged" });
    await expect(run()).rejects.toMatchObject({
      code: "config/bad-agent-loop",
      subject: expect.stringContaining('agent loop "ragged", row 0, '),
    });
  });

  it("an unknown format is an error before anything is generated, not a run without tools", async () => {
    for (const defaultAgentLoop of ["tool_agent", "single_turn_agent"]) {
      const multiTurn = { format: "hermse" };
      const { engine, run } = makeFakeRollout({ reply: () => "ok", multiTurn, defaultAgentLoop });
      await expect(run()).rejects.toMatchObject({
        code: "config/unknown-name",
        subject: expect.stringContaining("multi_turn.format"),
        expected: expect.stringContaining("hermes"),
        received: "hermse",
      });
      expect(engine.counts.created).toBe(0);
    }
  });

  it("names in rows are checked before anything is generated", async () => {
    const { engine, run } = makeFakeRollout({
      reply: () => "ok",
      tools: [new CountingTool()],
      interactions: [new Recorder("gsm8k")],
    });
    const fine = makeRow({}, 0);
    const walk = { code: "config/unknown-tool", expected: "wait", received: "walk" };
    for (const [bad, details] of [
      [
        { agent_name: "react" },
        {
          code: "config/unknown-name",
          subject: expect.stringContaining("agent_name"),
          expected: expect.stringMatching(/single_turn_agent.*tool_agent|tool_agent.*single_turn_agent/),
          received: "react",
        },
      ],
      [
        { extra_info: { interaction_kwargs: { name: "gsm9k" } } },
        {
          code: "config/unknown-interaction",
          subject: "row 1: extra_info.interaction_kwargs.name",
          expected: "gsm8k",
          received: "gsm9k",
        },
      ],
      [
        { extra_info: { need_tools_kwargs: true, tools_kwargs: { walk: {} } } },
        { ...walk, subject: "row 1: extra_info.tools_kwargs" },
      ],
      [{ extra_info: { tool_selection: ["wait", "walk"] } }, { ...walk, subject: "row 1: extra_info.tool_selection" }],
    ] as const) {
      await expect(run([fine, makeRow(bad, 1)])).rejects.toMatchObject(details);
    }
    expect(engine.counts.created).toBe(0);
  });
});

describe("lifecycles", () => {
  it("every kwarg of a row reaches its call; the id that a tool chose is used from then on", async () => {
    const tool = new CountingTool({ id: "own-id" });
    const { run } = makeFakeRollout({ reply: ({ turn }) => (turn === 0 ? call(1) : "done"), tools: [tool] });
    const [t] = await run([
      makeRow({
        extra_info: {
          row: { truth: 7 },
          need_tools_kwargs: true,
          tools_kwargs: {
            wait: {
              create_kwargs: { a: 1 },
              execute_kwargs: { b: 2 },
              calc_reward_kwargs: { c: 3 },
              release_kwargs: { d: 4 },
            },
          },
        },
      }),
    ]);
    const [create, execute, reward, release] = tool.calls.kwargs;
    expect(create).toEqual({ createKwargs: { a: 1 }, groundTruth: "7", row: { truth: 7 } });
    expect(execute).toMatchObject({ id: "own-id", b: 2, agentData: {}, signal: expect.any(AbortSignal) });
    expect([reward, release]).toEqual([{ c: 3 }, { d: 4 }]);
    expect(t!.rewards.toolScore).toBe(0.5);
    expect(t!.metrics["tool/wait/waited"]).toBe(1);
  });

  it("a sample sees only the tools that its tools_kwargs name, when need_tools_kwargs is on", async () => {
    const { engine, run } = makeFakeRollout({ reply: () => "ok", tools: [new CountingTool()] });
    const [without, all] = await run([makeRow({ extra_info: { need_tools_kwargs: true } }, 0), makeRow({}, 1)]);
    expect(engine.detokenize(without!.tokenIds)).not.toContain("<tools>");
    expect(engine.detokenize(all!.tokenIds)).toContain('"wait"');
  });

  it("a sample sees only the tools of its tool_selection, in that order, and can call no other", async () => {
    const tools = ["a", "b", "c"].map((name) => new CountingTool({ name }));
    const reply = ({ turn }: { turn: number }) => (turn === 0 ? call(1).replace("wait", "a") : "done");
    const { engine, run } = makeFakeRollout({ reply, tools });
    const shown = async (extra_info: object) => {
      const [{ tokenIds }] = (await run([makeRow({ extra_info })])) as [Trajectory];
      const text = engine.detokenize(tokenIds);
      return [[...text.matchAll(/"name": ?"([abc])", ?"desc/g)].map(([, name]) => name).join(""), text] as const;
    };
    const [few, text] = await shown({ tool_selection: ["c", "b", "c"] });
    expect(few).toBe("cb");
    expect(text).toContain('unknown tool "a"; the tools are: c, b');
    const kwargs = { need_tools_kwargs: true, tools_kwargs: { a: {}, b: {} } };
    for (const [extra, names] of [
      [{ tool_selection: [] }, "abc"],
      [{ tool_selection: null }, "abc"],
      [{ ...kwargs, tool_selection: ["c", "b"] }, "b"],
    ] as const)
      expect((await shown(extra))[0]).toBe(names);
  });

  it("interactions: all four are called, with the row's kwargs; routed by name, else by data source", async () => {
    const [named, sourced] = [new Recorder("guess"), new Recorder("test")];
    const { run } = makeFakeRollout({ reply: () => "ok", interactions: [named, sourced], reward: null });
    const kwargs = { name: "guess", hint: "warm" };
    const [first] = await run([makeRow({ extra_info: { interaction_kwargs: kwargs } }, 0), makeRow({}, 1)]);
    for (const recorder of [named, sourced]) expect(recorder.calls).toEqual(["start", "reply", "score", "finalize"]);
    expect(named.kwargs[0]).toMatchObject({ hint: "warm", ground_truth: "7", data_source: "test" });
    expect(named.kwargs[0]!.messages).toEqual([{ role: "user", content: "hi" }]);
    expect(named.kwargs[1]).toMatchObject({ hint: "warm", agentData: {}, seed: expect.any(Number) });
    expect(first).toMatchObject({ reward: 1.5, rewards: { interactionScore: 0.5 } });
  });

  it("interaction_interval counts assistant turns; interaction_prob is drawn by the seed", async () => {
    const every = async (multiTurn: object, n = 1, seed = 1) => {
      const recorder = new Recorder("test", { reply: () => ({ content: "go on", score: 0 }) });
      const trajectories = await makeFakeRollout({
        reply: ({ turn }) => (turn % 2 === 0 ? call(0) : "answer"),
        tools: [new CountingTool()],
        interactions: [recorder],
        multiTurn: { maxAssistantTurns: 6, ...multiTurn },
        n,
        seed,
      }).run();
      return trajectories.map((t) => t.metrics.interaction_turns ?? 0);
    };
    expect(await every({})).toEqual([3]);
    expect(await every({ interactionInterval: 2 })).toEqual([3]);
    // Turn 2 is the first answer. It is no multiple of 4, so it is final.
    expect(await every({ interactionInterval: 4 })).toEqual([0]);
    const drawn = await every({ interactionProb: 0.5 }, 32);
    expect(new Set(drawn).size).toBeGreaterThan(1);
    expect(await every({ interactionProb: 0.5 }, 32)).toEqual(drawn);
    expect(await every({ interactionProb: 0.5 }, 32, 2)).not.toEqual(drawn);
    expect(await every({ interactionProb: 0 }, 2)).toEqual([0, 0]);
  });
});

describe("custom loops from a config", () => {
  const folder = join(import.meta.dirname, "..", "..", "fixtures", "loops");
  const entry = (name: string, config?: Record<string, unknown>) => ({
    name,
    class_name: `./echo-loop.ts#${name}`,
    config,
  });

  it("are TypeScript without a build step: a class or a function", async () => {
    provideHostModules({ "@cria/rollout": await import("../index.js") });
    const ofRun = agentLoops.extend();
    await loadAgentLoops([entry("EchoLoop", { depth: 3 }), entry("makeThrowingLoop")], folder, ofRun);
    const { run } = makeFakeRollout({ reply: () => "ok", agentLoops: ofRun });
    const [echoed, thrown] = await run([
      makeRow({ agent_name: "EchoLoop" }, 0),
      makeRow({ agent_name: "makeThrowingLoop" }, 1),
    ]);
    expect(echoed).toMatchObject({ finishReason: "stop", extraFields: { config: { depth: 3 } } });
    expect(thrown!.error).toBe("a bug in the loop");
    expect(agentLoops.find("EchoLoop")).toBeUndefined();
  });

  it("are refused if they are missing or no loop", async () => {
    await expect(loadAgentLoops([entry("Nothing")], folder)).rejects.toMatchObject({
      subject: expect.stringContaining("echo-loop.ts#Nothing"),
      code: "config/unreadable",
    });
    await expect(loadAgentLoops([entry("notALoop")], folder)).rejects.toMatchObject({
      code: "config/bad-value",
      received: "number",
    });
    await expect(loadAgentLoops([{ name: "x", class_name: "./none.ts#X" }], folder)).rejects.toMatchObject({
      subject: expect.stringContaining("none.ts"),
      code: "config/unreadable",
    });
    expect(() => agentLoops.get("Nothing")).toThrow(
      expect.objectContaining({ code: "config/unknown-name", received: "Nothing" }),
    );
  });
});
