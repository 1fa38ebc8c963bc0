import { drawProblem, Random } from "@cria/models";
import { calculate } from "@cria/tools";
import { expect, it } from "vitest";
import { EstimateTool, estimate, findNext, NextTool } from "./tools.js";

it("an estimate looks like a value and never is the right one", () => {
  const random = new Random(5);
  for (let i = 0; i < 500; i++) {
    const { expression, answer } = drawProblem(random, "train");
    expect(estimate(expression)).toMatch(/^-?\d+$/);
    expect(estimate(expression)).not.toBe(answer);
    expect(Math.abs(Number(estimate(expression)) - calculate(expression)!)).toBeLessThanOrEqual(10);
  }
  expect(estimate("1/")).toMatch(/^error/);
});

it("a path has numbers of three digits, each another start's next one", () => {
  const found = new Set(Array.from({ length: 900 }, (_, i) => findNext(i + 100)));
  expect(found.size).toBe(900);
  expect([Math.min(...found), Math.max(...found)]).toEqual([100, 999]);
});

it("a call from where the path stands earns its reward, and no other does", async () => {
  const tool = new NextTool({ reward: 0.2 });
  await tool.create("a", { createKwargs: { start: 372 } });
  const ask = async (n: number) => (await tool.execute("a", { n })).reward;
  const second = findNext(372);
  expect([await ask(372), await ask(372), await ask(second), await ask(100)]).toEqual([0.2, 0, 0.2, 0]);
  const plain = new NextTool();
  await plain.create("a", { createKwargs: { start: 372 } });
  expect((await plain.execute("a", { n: 372 })).reward).toBe(0);
  expect((await new EstimateTool().execute("a", { expression: "20+21" })).response.text).toBe("40");
});
