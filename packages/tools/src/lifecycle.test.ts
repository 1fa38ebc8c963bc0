import { describe, expect, it } from "vitest";
import { type BaseTool, CalculatorTool, CodeTool, createTools, Gsm8kTool, SearchTool } from "./index.js";
import { RecordingTool } from "./testing/index.js";

describe("lifecycle of a tool", () => {
  it("hands each call its kwargs: create, execute, calc_reward, release", async () => {
    const tool = new RecordingTool({ reward: 0.25 });
    const toolsKwargs = {
      create_kwargs: { ground_truth: "72" },
      execute_kwargs: { limit: 3 },
      calc_reward_kwargs: { scale: 2 },
      release_kwargs: { keep: false },
    };
    const { signal } = new AbortController();
    const agentData = { seen: 1 };
    const { instanceId } = await tool.create("i", { createKwargs: toolsKwargs.create_kwargs });
    const options = { agentData, ...toolsKwargs.execute_kwargs, signal };
    expect(await tool.execute(instanceId, { x: 1 }, options)).toEqual({
      response: { text: "ok" },
      reward: 0,
      metrics: {},
    });
    expect(await tool.calcReward(instanceId, toolsKwargs.calc_reward_kwargs)).toBe(0.25);
    expect(tool.open).toEqual(["i"]);
    await tool.release(instanceId, toolsKwargs.release_kwargs);
    await tool.dispose();
    expect(tool.open).toEqual([]);
    expect(tool.calls).toEqual([
      { phase: "create", instanceId: "i", kwargs: { ground_truth: "72" } },
      { phase: "execute", instanceId: "i", parameters: { x: 1 }, kwargs: { agentData, limit: 3, signal } },
      { phase: "calcReward", instanceId: "i", kwargs: { scale: 2 } },
      { phase: "release", instanceId: "i", kwargs: { keep: false } },
      { phase: "dispose", instanceId: "", kwargs: {} },
    ]);
  });

  it.each<[string, () => BaseTool]>([
    ["calculator", () => new CalculatorTool()],
    ["gsm8k", () => new Gsm8kTool()],
    ["code", () => new CodeTool({ language: "javascript" })],
    ["search", () => new SearchTool({ search: async () => [] })],
  ])("%s: unused instances, double release and disposal without use do no harm", async (_, make) => {
    const tool = make();
    for (const id of ["a", "b"]) expect(await tool.create(id, { createKwargs: {} })).toMatchObject({ instanceId: id });
    for (const id of ["a", "b"]) expect(await tool.calcReward(id, {})).toBe(0);
    for (const id of ["a", "b", "a"]) await tool.release(id, {});
    await tool.dispose();
    await tool.dispose();
  });

  it("config reaches the constructor, and an own schema renames the tool", async () => {
    const tool_schema = { type: "function" as const, function: { name: "check", parameters: { type: "object" } } };
    const entry = { class_name: "verl.tools.gsm8k_tool.Gsm8kTool", config: { type: "native" }, tool_schema };
    const tools = await createTools([entry], ".");
    expect(tools.get("check")!.config).toEqual({ type: "native" });
    expect(tools.get("check")!.schema).toEqual(tool_schema);
  });
});
