import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { type ReplayOptions, replayOptions } from "../config/options/algorithm.js";
import { ReplayBuffer } from "./replay-buffer.js";
import { REPLAY_FILE, readReplayFile, writeReplayFile } from "./replay-file.js";

const folder = mkdtempSync(join(tmpdir(), "cria-replay-"));
afterAll(() => rmSync(folder, { recursive: true }));

const make = (options: Partial<ReplayOptions> = {}) =>
  new ReplayBuffer(replayOptions.parse({ share: 1, ...options }), 7);

function makeTrajectory(uid: string, sampleIndex: number, reward: number): Trajectory {
  return {
    rowIndex: 0,
    uid,
    sampleIndex,
    dataSource: "test",
    tokenIds: Int32Array.of(1, 2, sampleIndex),
    promptLength: 1,
    responseMask: Uint8Array.of(0, 1, 1),
    rolloutLogprobs: Float32Array.of(0, -0.1, -1 / 3),
    messages: [{ role: "user", content: "a long text" }],
    finishReason: "stop",
    numTurns: 2,
    turnScores: [],
    toolRewards: [{ value: 0.1, tokenIndex: 2 }],
    reward,
    rewards: {
      outcome: reward,
      length: 0,
      tools: 0,
      turns: 0,
      tokenLevel: Float64Array.of(0, 0, reward),
      score: reward,
      parts: [{ name: "p", value: 1, weight: 1, by: "a rule" }],
      success: reward > 0,
      toolScore: null,
      interactionScore: null,
    },
    metrics: { tool_calls: 1 },
    extraFields: { acc: 0.5, text: "a long text" },
    timeline: {
      loop: [{ state: "pending", at: 1 }],
      request: [],
      turns: [{ role: "assistant", start: 1, end: 3, startedAt: 1, endedAt: 2, state: "s" }],
    },
  };
}

/** A step of groups "<step>a", "<step>b", ...: two conversations each, whose rewards differ by `spread`. */
function addStep(buffer: ReplayBuffer, step: number, spreads: readonly number[]): void {
  const trajectories = spreads.flatMap((spread, i) => {
    const uid = `${step}${"abcdef"[i]}`;
    return [makeTrajectory(uid, 0, 0), makeTrajectory(uid, 1, spread)];
  });
  const advantages = spreads.flatMap((spread) => (spread > 0 ? [-1, 1] : [0, 0]));
  buffer.add(step, trajectories, advantages);
}

const nameKept = (buffer: ReplayBuffer) => buffer.groups.map(({ trajectories }) => trajectories[0]!.uid);
const nameDrawn = (buffer: ReplayBuffer, step: number, own: number) =>
  buffer.draw(step, own).map(({ trajectories }) => trajectories[0]!.uid.split(" ")[0]);

describe("a replay buffer", () => {
  it("holds at most `size` groups of at most `max_age` steps, the newest, and none that taught nothing", () => {
    const buffer = make({ size: 3, maxAge: 2 });
    addStep(buffer, 1, [1, 0, 1]);
    expect(nameKept(buffer)).toEqual(["1a", "1c"]);
    addStep(buffer, 2, [1, 1]);
    expect(nameKept(buffer)).toEqual(["1c", "2a", "2b"]);
    addStep(buffer, 3, []);
    // No group of step 1 is left that step 4 may use.
    expect(nameKept(buffer)).toEqual(["2a", "2b"]);
    expect(nameDrawn(buffer, 5, 9)).toEqual([]);
  });

  it("leaves out failed conversations, but not those that only count in the baseline", () => {
    const buffer = make();
    const group = [0, 1, 2, 3].map((i) => makeTrajectory("a", i, i));
    const failed = { ...group[1]!, error: "the judge broke" };
    buffer.add(1, [group[0]!, failed, group[2]!, group[3]!], [-1, null, null, 1]);
    expect(buffer.groups[0]!.trajectories.map(({ sampleIndex }) => sampleIndex)).toEqual([0, 2, 3]);
  });

  it("draws `share` times a step's own groups, each once, with uids of their own", () => {
    const buffer = make({ share: 0.5 });
    addStep(buffer, 1, [1, 1, 1]);
    addStep(buffer, 2, [1]);
    expect(buffer.draw(3, 4)).toHaveLength(2);
    const all = buffer.draw(3, 100);
    expect(all.map(({ age }) => age)).toEqual([2, 2, 2, 1]);
    expect(all.map(({ trajectories }) => trajectories.map(({ uid }) => uid))).toEqual(
      ["1a of step 1", "1b of step 1", "1c of step 1", "2a of step 2"].map((uid) => [uid, uid]),
    );
  });

  it("draws uniformly by seed and step, the newest, or those whose rewards vary most", () => {
    const fill = (sampling: ReplayOptions["sampling"]) => {
      const buffer = make({ sampling });
      addStep(buffer, 1, [3, 1]);
      addStep(buffer, 2, [2, 1, 1]);
      return buffer;
    };
    expect(nameDrawn(fill("newest"), 3, 3)).toEqual(["2a", "2b", "2c"]);
    expect(nameDrawn(fill("by_variance"), 3, 2)).toEqual(["1a", "2a"]);
    const draws = Array.from({ length: 40 }, (_, i) => nameDrawn(fill("uniform"), 3, 2).concat(String(i % 1)));
    expect(new Set(draws.map((draw) => draw.join())).size).toBe(1);
    const drawn = new Set(
      Array.from({ length: 60 }, (_, i) => {
        const buffer = new ReplayBuffer(replayOptions.parse({ share: 1 }), i);
        addStep(buffer, 1, [3, 1]);
        return nameDrawn(buffer, 2, 1)[0];
      }),
    );
    expect([...drawn].sort()).toEqual(["1a", "1b"]);
  });

  it("keeps no texts, and a file restores it bit by bit", async () => {
    const buffer = make();
    addStep(buffer, 1, [1 / 3]);
    expect(JSON.stringify(buffer.groups)).not.toMatch(/long text|a rule/);
    await writeReplayFile(join(folder, REPLAY_FILE), buffer.groups);
    const again = make();
    again.restore(await readReplayFile(folder));
    expect(again.groups).toEqual(buffer.groups);
    const [kept] = again.groups[0]!.trajectories;
    expect(kept!.rolloutLogprobs).toEqual(Float32Array.of(0, -0.1, -1 / 3));
    expect(kept!.timeline!.turns).toMatchObject([{ role: "assistant", state: "s" }]);
    expect(kept!.extraFields).toEqual({ acc: 0.5 });
    again.restore([]);
    expect(again.draw(2, 1)).toEqual([]);
  });

  it("begins empty with a checkpoint that has none, and refuses a damaged file", async () => {
    expect(await readReplayFile(join(folder, "nowhere"))).toEqual([]);
    writeFileSync(join(folder, REPLAY_FILE), '{"step": 1, "trajec');
    await expect(readReplayFile(folder)).rejects.toMatchObject({ code: "data/bad-checkpoint" });
  });
});
