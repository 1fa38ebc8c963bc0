import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { describeWithNats } from "../testing/nats-server.js";
import { whyNoNamespaces } from "../testing/network/namespaces.js";
import { findFaults, TrainingNetwork } from "../testing/network/scenario.js";
import { quickTimes } from "../testing/test-jobs.js";

// Longer cuts, lost packets and slow lines: scripts/nightly/cluster-network.mjs.
const reason = whyNoNamespaces();

describeWithNats("coordinator, workers and server, each in a network of its own", () => {
  it.skipIf(reason)(`lose no job and count none twice when lines are cut${reason ? `: ${reason}` : ""}`, async () => {
    const training = new TrainingNetwork(quickTimes);
    try {
      await training.server.start();
      const jobs = 50;
      const worker = { role: "worker", jobMs: 100, slots: 2 } as const;
      const coordinator = training.begin("trainer", { role: "coordinator", jobs });
      const workers = [training.begin("first", worker), training.begin("second", worker)];
      await Promise.all([coordinator.until("lease"), ...workers.map((each) => each.until("begun"))]);

      const { network } = training;
      network.cut("first");
      await delay(500);
      network.cut("trainer");
      const lost = await coordinator.until("lost", 1, 10_000);
      expect(lost.received).toBe("it could not be renewed in time");
      network.mend("trainer");
      network.mend("first");
      await coordinator.until("end");
      expect(findFaults(coordinator, jobs)).toEqual([]);
    } finally {
      await training.dispose();
    }
  });
});
