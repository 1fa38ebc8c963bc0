import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openNatsBus } from "@cria/cluster";
import { expect, it } from "vitest";
import { double, join as joinBus, rollout } from "../../packages/cluster/src/testing/bus-contract.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../../packages/cluster/src/testing/nats-server.js";

describeWithNats("lan.conf: a server without security", () => {
  it("accepts every client that reaches it", async () => {
    const server = new NatsServer();
    await server.start(readFileSync(join(import.meta.dirname, "lan.conf"), "utf8"));
    const coordinator = await openNatsBus({ servers: server.url, role: "coordinator", bounds });
    const worker = await openNatsBus({ servers: server.url, role: "worker" });
    await joinBus(worker, "here", double);
    expect(await coordinator.submit(rollout, { row: 2 })).toMatchObject({ value: { answer: 4 } });
    await Promise.all([coordinator.close(), worker.close()]);
    await server.dispose();
  });
});
