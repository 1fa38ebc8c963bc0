import { afterEach, expect, it, vi } from "vitest";
import type { JobBus } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { double, join, quickTimes, rollout } from "../testing/bus-contract.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { openNatsStore } from "./open-nats-store.js";

describeWithNats("a server that is killed and started again", () => {
  const server = new NatsServer();
  const buses: JobBus[] = [];
  afterEach(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
    await server.dispose();
  });

  it("in the middle of jobs loses none, and none is done twice", async () => {
    const uncaught = vi.fn();
    process.on("unhandledRejection", uncaught);
    await server.start();
    const times = { ...quickTimes, ackWaitMs: 4_000 };
    const open = async (role: "coordinator" | "worker") => {
      const bus = openBus(await openNatsStore({ servers: server.url, role, prefix: "restart", times, bounds }));
      buses.push(bus);
      return bus;
    };
    const coordinator = await open("coordinator");
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const begun: number[] = [];
    await join(
      await open("worker"),
      "a",
      async (payload, context) => {
        begun.push(payload.row);
        await released;
        return double(payload, context);
      },
      2,
    );
    const seen: number[] = [];
    await coordinator.watchPolicy(({ version }) => seen.push(version), new AbortController().signal);
    const run = "f".repeat(64);
    const policy = await coordinator.publishPolicy({ run, version: 0, weights: "a".repeat(64) });
    const results = [1, 2, 3, 4].map((row) => coordinator.submit(rollout, { row }));
    await vi.waitFor(() => expect(begun).toHaveLength(2), { timeout: 20_000 });
    await server.kill();
    release();
    const during = coordinator.submit(rollout, { row: 5 });
    const blob = coordinator.blobs.put(new Uint8Array(1000));
    await server.start();
    expect((await during).value.answer).toBe(10);
    expect(await coordinator.blobs.has(await blob)).toBe(true);
    expect((await Promise.all(results)).map(({ value }) => value.answer)).toEqual([2, 4, 6, 8]);
    expect(begun.sort()).toEqual([1, 2, 3, 4, 5]);
    await coordinator.publishPolicy({ run, version: 1, weights: "b".repeat(64) }, policy);
    await vi.waitFor(() => expect(seen.at(-1)).toBe(1), { timeout: 20_000 });
    expect(uncaught).not.toHaveBeenCalled();
    process.off("unhandledRejection", uncaught);
  });
});
