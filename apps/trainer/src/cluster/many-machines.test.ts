import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterRunOptions, describeWithNats, NatsServer, runOnCluster } from "@cria/cluster/testing";
import { makeUniform } from "@cria/core";
import { isNightly } from "@cria/core/testing";
import { afterAll, expect, it } from "vitest";

// Separate processes, as on many machines: coordinator, workers, nats-server. scripts/nightly/cluster.mjs tries many
// more.
const root = join(import.meta.dirname, "..", "..", "..", "..");

describeWithNats("a training over NATS", () => {
  const folder = mkdtempSync(join(tmpdir(), "cria-cluster-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("has the adapter of one process, with workers that are killed or frozen", async () => {
    const run = async (
      name: string,
      mishaps: Pick<ClusterRunOptions, "workers" | "workerKills" | "workerFreeze">,
      overrides: readonly string[] = [],
    ) => {
      // A bus takes much of what a server may store: each gets its own.
      const server = new NatsServer();
      await server.start();
      try {
        return await runOnCluster({
          cria: [process.execPath, join(root, "apps", "trainer", "bin", "cria.mjs")],
          config: join(root, "examples", "calculator", "config.yaml"),
          overrides: [
            "trainer.threads=1",
            "trainer.val_before_train=false",
            "data.val_files=null",
            "data.train_batch_size=4",
            "actor_rollout_ref.rollout.n=4",
            "actor_rollout_ref.actor.ppo_mini_batch_size=2",
            "cluster.silence_s=1.5",
            "cluster.take_part=false",
            ...overrides,
          ],
          folder,
          name,
          steps: 6,
          server,
          random: makeUniform(1),
          ...mishaps,
        });
      } finally {
        await server.dispose();
      }
    };
    const alone = await run("alone", { workers: 0 });
    const shared = await run("shared", { workers: 3, workerKills: 2 });
    expect(shared.sha).toBe(alone.sha);
    expect(shared.workerKills).toBe(2);
    expect(shared.jobsElsewhere).toBeGreaterThan(6 * 16);
    // With a lag, coordinate.test.ts loses a worker in each run of the tests.
    if (isNightly) {
      const frozen = await run("frozen", { workers: 2, workerFreeze: true });
      expect(frozen.sha).toBe(alone.sha);
      expect(frozen.workerFreezes).toBe(1);
      expect(frozen.abandoned).toBe(0);
      const ahead = ["trainer.v1.trainer_mode=colocate_async"];
      const aheadAlone = await run("ahead-alone", { workers: 0 }, ahead);
      const aheadShared = await run("ahead-shared", { workers: 2, workerKills: 1 }, ahead);
      expect(aheadShared.sha).toBe(aheadAlone.sha);
      expect(aheadShared.sha).not.toBe(alone.sha);
      expect(aheadShared.workerKills).toBe(1);
    }
  });
});
