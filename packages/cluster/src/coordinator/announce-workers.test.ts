import { describe, expect, it } from "vitest";
import type { WorkerInfo } from "../bus/job-bus.js";
import { Announcer } from "./announce-workers.js";

const worker = (id: string, score = 1) => ({ id, host: "h", slots: { score } }) as WorkerInfo;

function open() {
  const told: string[] = [];
  const announcer = new Announcer(
    (event) => void (event.type === "notice" && told.push(event.text)),
    ({ slots }) => slots.score! > 0,
  );
  const set = (workers: WorkerInfo[]) => {
    announcer.setWorkers(workers);
    return told.splice(0);
  };
  return set;
}

describe("workers that join or leave", () => {
  it("are named once, as long as they help", () => {
    const set = open();
    expect(set([worker("a"), worker("b", 0)])).toEqual([expect.stringContaining("worker a")]);
    expect(set([worker("a"), worker("b", 0)])).toEqual([]);
    expect(set([worker("a", 0), worker("b")])).toEqual([
      expect.stringContaining("worker b"),
      expect.stringContaining("worker a"),
    ]);
  });

  it("take few lines, however many they are, and the last line counts the others", () => {
    const set = open();
    const many = Array.from({ length: 2000 }, (_, i) => worker(`w${i}`));
    for (const workers of [many, [], many]) {
      const lines = set(workers);
      expect(lines.length).toBeLessThan(20);
      const named = lines.filter((line) => /\bw\d+\b/.test(line)).length;
      expect(lines).toHaveLength(named + 1);
      expect(lines.at(-1)).toContain(`${2000 - named} more`);
    }
    const [first, ...rest] = many;
    expect(set(rest)).toEqual([expect.stringContaining(`worker ${first!.id}`)]);
  });
});
