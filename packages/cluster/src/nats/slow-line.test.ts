import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, it, vi } from "vitest";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { SlowLine } from "../testing/network/slow-line.js";
import { double, join, quickTimes, rollout } from "../testing/test-jobs.js";
import { openNatsBus } from "./open-nats-bus.js";

describeWithNats("over lines that are slow, stand still and break", () => {
  const server = new NatsServer();
  const lines: SlowLine[] = [];
  const buses: { close(): Promise<void> }[] = [];
  afterAll(async () => {
    for (const line of lines) line.delayMs = 0;
    await Promise.all(buses.map((bus) => bus.close()));
    await Promise.all(lines.map((line) => line.close()));
    await server.dispose();
  });
  const open = async (role: "coordinator" | "worker") => {
    const line = new SlowLine({ host: "127.0.0.1", port: server.port });
    lines.push(line);
    const bus = await openNatsBus({
      servers: await line.open(),
      role,
      bounds,
      times: { ...quickTimes, leaseMs: 3_000 },
    });
    buses.push(bus);
    return { line, bus };
  };

  it("no job is lost and none is counted twice", async () => {
    await server.start();
    const coordinator = await open("coordinator");
    const first = await open("worker");
    const second = await open("worker");
    const begun = vi.fn(double);
    await join(first.bus, "first", begun, 4);
    await join(second.bus, "second", double, 4);
    for (const { line } of [coordinator, first, second]) line.delayMs = 60;
    const rows = Array.from({ length: 16 }, (_, row) => row);
    const results = Promise.all(rows.map((row) => coordinator.bus.submit(rollout, { row })));
    await vi.waitFor(() => expect(begun).toHaveBeenCalled(), { timeout: 20_000, interval: 10 });
    first.line.stop();
    coordinator.line.break();
    await delay(300);
    first.line.go();
    expect((await results).map(({ value }) => value.answer)).toEqual(rows.map((row) => 2 * row));
    expect(coordinator.bus.stats).toMatchObject({ submitted: 16, done: 16, failed: 0, outstanding: 0, conflicts: 0 });
  });
});
