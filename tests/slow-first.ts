import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Files that take 5 s and more, the slowest first: one that began last would keep the run waiting. */
const SLOW = [
  "apps/trainer/src/view/browser/pages.test.ts",
  "packages/cluster/src/coordinator/coordinate.test.ts",
  "packages/cluster/src/nats/nats-bus.test.ts",
  "packages/cluster/src/local/local-bus.test.ts",
  "packages/trainer/src/checkpoints/kill-resume.test.ts",
  "packages/tools/src/sandbox/hostile/python-hostile.test.ts",
  "apps/trainer/src/cluster/many-machines.test.ts",
  "packages/tools/src/sandbox/python-sandbox.test.ts",
  "apps/trainer/src/commands/write-limits.test.ts",
  "tests/packages.test.ts",
  "native/test/grammar.test.ts",
  "apps/trainer/src/check-model/check-model.test.ts",
  "tests/examples.test.ts",
  "packages/trainer/src/grammar.test.ts",
  "packages/trainer/src/checkpoints/checkpoints.test.ts",
  "packages/engine/src/batch-bits.test.ts",
  "tests/docs.test.ts",
  "packages/engine/src/device-training.test.ts",
  "apps/trainer/src/cli.test.ts",
  "apps/trainer/src/commands/environment-commands.test.ts",
  "packages/tools/src/formats/parsers.test.ts",
  "packages/trainer/src/run/train-agent.test.ts",
  "packages/trainer/src/step/algorithms.test.ts",
  "packages/trainer/src/run/wiring.test.ts",
  "apps/trainer/src/commands/train-signals.test.ts",
  "tests/python-agent/python-agent.test.ts",
  "tests/recorded-bits.test.ts",
  "packages/engine/src/thread-count.test.ts",
  "packages/tools/src/mcp/mcp.test.ts",
  "tests/bundling.test.ts",
  "tests/declarations.test.ts",
  "packages/trainer/src/replay/replay.test.ts",
  "packages/trainer/src/run/lag.test.ts",
  "packages/cluster/src/nats/nats-restart.test.ts",
];

/** The slow files, then the others as vitest would run them. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = SLOW.findIndex((path) => moduleId.endsWith(`/${path}`));
      return at < 0 ? SLOW.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
