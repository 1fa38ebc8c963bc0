import { describe, expect, it } from "vitest";
import { describeBus, double, join, quickTimes, rollout } from "../testing/bus-contract.js";
import { connectLocally, LocalHub } from "./local-store.js";
import { openLocalBus } from "./open-local-bus.js";

describe("a bus in this process", () => {
  describeBus((times) => {
    const hub = new LocalHub(times);
    return {
      connect: async () => connectLocally(hub),
      damage: async (sha) => void hub.blobs.entries.get(sha)!.fill(0, 0, 1),
    };
  });

  it("does thousands of jobs, more than may be outstanding", async () => {
    const bus = openLocalBus();
    await join(bus, "here", double, 8);
    const rows = Array.from({ length: 2_000 }, (_, row) => row);
    const results = await Promise.all(rows.map((row) => bus.submit(rollout, { row })));
    expect(results.map(({ value }) => value.answer)).toEqual(rows.map((row) => 2 * row));
    expect(bus.stats).toMatchObject({ done: 2_000, retries: 0, outstanding: 0 });
    await bus.close();
  });

  it("lets one of two writers at once change a record", async () => {
    const { jobs } = new LocalHub();
    const seen = await jobs.set("a", "1");
    const written = await Promise.all(["2", "3"].map((text) => jobs.set("a", text, seen)));
    expect(written).toEqual([seen! + 1, undefined]);
    expect(await jobs.get("a")).toMatchObject({ text: "2" });
  });

  it("drops the oldest blobs beyond its bound", async () => {
    const bus = openLocalBus({ hub: new LocalHub(quickTimes, 1000) });
    const first = await bus.blobs.put(new Uint8Array(600).fill(1));
    const second = await bus.blobs.put(new Uint8Array(600).fill(2));
    expect([await bus.blobs.has(first), await bus.blobs.has(second)]).toEqual([false, true]);
    await expect(bus.blobs.put(new Uint8Array(1001))).rejects.toMatchObject({ code: "cluster/blob-size" });
    await bus.close();
  });
});
