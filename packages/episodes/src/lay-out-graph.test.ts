import { describe, expect, it } from "vitest";
import { layOutGraph } from "./lay-out-graph.js";
import { MessageGraph, type Said } from "./message-graph.js";

/** A question of two tokens and an answer of five, of which a grammar chose the second and the last. */
function makeGraph(): MessageGraph {
  const graph = new MessageGraph();
  const { input } = graph.locate([{ role: "user", content: "a" }], []);
  input.tokenIds = Int32Array.of(1, 2);
  const { answer } = graph.claim(input, "", () => false);
  const said: Said = {
    message: { role: "assistant", content: "b" },
    finishReason: "stop",
    tokenIds: Int32Array.of(10, 11, 12, 13, 14),
    logprobs: Float32Array.of(-1, -2, -3, -4, -5),
    constrained: Uint8Array.of(0, 1, 0, 0, 1),
    reasoningTokens: 0,
    ended: true,
    policyVersion: 0,
    startedAt: 0,
    endedAt: 1,
  };
  Object.assign(answer, { state: "done", said, order: 0 });
  return graph;
}

describe("tokens that a grammar chose", () => {
  it("are left out each by its own flag", () => {
    const { responseMask, rolloutLogprobs } = layOutGraph(makeGraph(), {
      credit: "all_branches",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    expect([...responseMask]).toEqual([0, 0, 1, 0, 1, 1, 0]);
    expect([...rolloutLogprobs]).toEqual([0, 0, -1, 0, -3, -4, 0]);
  });

  it("are trained on if a task says so", () => {
    const { responseMask } = layOutGraph(makeGraph(), {
      credit: "all_branches",
      trainOnConstrained: true,
      trainOnToolCalls: true,
    })!;
    expect([...responseMask]).toEqual([0, 0, 1, 1, 1, 1, 1]);
  });
});
