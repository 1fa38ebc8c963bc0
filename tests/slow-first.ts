import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Files that take 10 s and more on two cores, the slowest first: one that began last would keep the run waiting. */
const SLOW = [
  "apps/trainer/src/view/browser/pages.test.ts",
  "packages/tools/src/sandbox/hostile/python-hostile.test.ts",
  "tests/recorded-bits.test.ts",
  "tests/declarations.test.ts",
  "packages/engine/src/thread-count.test.ts",
  "packages/trainer/src/checkpoints/kill-resume.test.ts",
  "apps/trainer/src/commands/write-limits.test.ts",
  "packages/cluster/src/nats/nats-bus.test.ts",
  "tests/clients/clients.test.ts",
  "tests/readme.test.ts",
  "packages/tools/src/sandbox/python-sandbox.test.ts",
  "packages/engine/src/device-training.test.ts",
  "packages/engine/src/prefix-reuse.test.ts",
  "packages/engine/src/batch-bits.test.ts",
  "packages/tools/src/sandbox/hostile/javascript-hostile.test.ts",
  "packages/cluster/src/coordinator/coordinate.test.ts",
  "packages/cluster/src/local/local-bus.test.ts",
  "apps/trainer/src/cluster/many-machines.test.ts",
  "packages/trainer/src/grammar.test.ts",
  "apps/trainer/src/cli.test.ts",
  "packages/tools/src/sandbox/sandbox-child.test.ts",
  "tests/packages.test.ts",
  "packages/rollout/src/loops/code-environments.test.ts",
  "packages/tools/src/mcp/mcp.test.ts",
  "packages/tokenizer-delta/src/piece-tokenizer.test.ts",
  "packages/rollout/src/loops/load.test.ts",
  "packages/trainer/src/checkpoints/checkpoints.test.ts",
  "tests/python-agent/python-agent.test.ts",
  "tests/examples.test.ts",
  "apps/trainer/src/commands/train-signals.test.ts",
  "native/test/grammar.test.ts",
  "tests/bundling.test.ts",
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
