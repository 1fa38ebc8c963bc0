/** More conversations at once than the engine has slots: those that wait for a tool make room, and come back. */
import { loadModel } from "@cria/engine";
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import type { Row } from "../row.js";
import { THREADS } from "../settings.js";
import { sizeContext, type Workload, writeConversations } from "./conversations.js";
import { countNewTokens, prepareTalks, runKept } from "./run-ours.js";

const SLOTS = 64;

/** @param shape groups of any number. */
export async function measureFewSlots(shape: Workload, { includes, log }: BenchmarkOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const count of [256, 1024]) {
    const title = `embedded policy, F32: ${count} conversations over ${SLOTS} slots`;
    if (!includes(title)) continue;
    const workload = { ...shape, groups: count / shape.groupSize };
    await using model = await loadModel({
      path: embeddedPolicyPath,
      contextSize: sizeContext(workload),
      maxSequences: SLOTS,
      threads: THREADS,
      drafting: false,
    });
    const talks = prepareTalks(
      model,
      writeConversations(workload, (text) => model.tokenize(text).length),
    );
    const fresh = countNewTokens(talks, workload);
    const { evaluated, seconds } = await runKept(model, talks, workload);
    const { evictions, recomputedTokens } = model.schedulerStats();
    log(`${title}: ${evaluated} of ${fresh}, ${evictions} evictions, ${recomputedTokens} recomputed`);
    const told = { case: title, peers: {} };
    const sampled = count * workload.turns * workload.responseTokens;
    rows.push(
      {
        ...told,
        metric: `tokens evaluated / new tokens (${fresh})`,
        ours: evaluated / fresh,
        target: "at most 1.05",
        met: evaluated <= 1.05 * fresh,
      },
      {
        ...told,
        metric: "sampled tokens per second, deterministic: true",
        ours: sampled / seconds,
        target: null,
        met: null,
      },
    );
  }
  return rows;
}
