import { average } from "./average.js";
import { percent, type Rule } from "./rule.js";
import { WINDOW } from "./run-history.js";

/** Rules about work that is shared with other machines. */
export const clusterRules: readonly Rule[] = [
  {
    name: "audit_failed",
    when: "A worker's result differs from what the coordinator computed again.",
    look: (run) => {
      const sum = (name: string) => run.values(name, run.steps).reduce((a, b) => a + b, 0);
      const failed = sum("cluster/audits_failed");
      if (failed === 0) return null;
      return {
        severity: "high",
        weight: 0.5,
        sentence: `${failed} of ${sum("cluster/audits")} audits failed: a worker's results differ from what its class computes, and some that were not looked at are in the weights`,
        remedy:
          "Look who is shut out (the page Workers of cria view), what its machine lacks (cria doctor) and whether its Cria is the same; go on from a checkpoint before that step, with a higher cluster.audit",
        keys: ["cluster.audit"],
        filter: null,
      };
    },
  },
  {
    name: "redelivered",
    when: "In four of five steps jobs of workers are begun again, and these are one in fifty or more.",
    look: (run) => {
      const again = run.values("cluster/redelivered");
      const share = (average(again) ?? 0) / Math.max(1, run.mean("cluster/jobs_elsewhere"));
      if (run.steps.length < WINDOW || again.filter((count) => count > 0).length < WINDOW - 1 || share < 0.02)
        return null;
      const from = run.recent[0]!["training/global_step"] ?? 0;
      return {
        severity: "medium",
        weight: Math.min(1, share),
        sentence: `In steps ${from} to ${run.lastStep} jobs were begun again, ${percent(share)} of those that workers did: workers fail, leave or fall silent`,
        remedy:
          "Look which of them fail or come and go (the page Workers of cria view): whether they have the memory, the user code and a connection that lasts; where jobs take long, raise cluster.silence_s",
        keys: ["cluster.silence_s", "cluster.max_tries"],
        filter: null,
      };
    },
  },
];
