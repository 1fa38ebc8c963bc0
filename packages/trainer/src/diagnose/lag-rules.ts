import { percent, type Rule, shorten } from "./rule.js";
import type { RunHistory } from "./run-history.js";

const KEYS = ["trainer.v1.trainer_mode", "trainer.v1.colocate_async.num_warmup_batches"];

/** Number of updates between the policy that sampled a step and the one that trained on it; 0 without a lag. */
const readStaleness = (run: RunHistory): number => run.mean("training/off_policy/trajectory_staleness/mean");

const WALL = "timing_s/wall/";

/** Rules about a lag: it hides the time in which conversations wait, at the cost of older samples. */
export const lagRules: readonly Rule[] = [
  {
    name: "idle_lag",
    when: "With a lag, conversations wait for tools a tenth of the time in which they generate, or less, and no worker takes part.",
    look: (run) => {
      const waiting =
        run.mean("timing_s/agent_loop/tool_calls/mean") + run.mean("timing_s/agent_loop/interactions/mean");
      const generating = run.mean("timing_s/agent_loop/generate_sequences/mean");
      if (readStaleness(run) === 0 || run.steps.length < 5 || run.mean("cluster/jobs_elsewhere") > 0) return null;
      if (waiting > 0.1 * generating) return null;
      return {
        severity: "low",
        weight: 0.1,
        sentence: `With a lag the policy learns from older conversations, and nothing is gained: a conversation waits ${shorten(waiting)} s for tools and generates for ${shorten(generating)} s, on the cores that train`,
        remedy: "Train without a lag: set trainer.v1.trainer_mode to sync",
        keys: KEYS,
        filter: null,
      };
    },
  },
  {
    name: "idle_cores",
    when: "For a fifth of the step's time, or more, over five steps no conversation generates, because all wait for tools (timing_s/wall/waiting_for_tools), and no worker takes part.",
    look: (run) => {
      const waiting = run.mean(`${WALL}waiting_for_tools`);
      const share = waiting / Math.max(1e-9, run.mean("timing_s/step"));
      if (share < 0.2 || run.steps.length < 5 || run.mean("cluster/jobs_elsewhere") > 0) return null;
      const staleness = readStaleness(run);
      return {
        severity: "low",
        weight: Math.min(1, share),
        sentence: `For ${percent(share)} of the time nothing is computed: every conversation waits for tools${staleness > 0 ? `, in spite of a lag of ${shorten(staleness)}` : ""}`,
        remedy:
          staleness > 0
            ? "Let more conversations run at once (rollout.max_num_seqs), or sample further ahead (num_warmup_batches)"
            : "Sample a step ahead, which fills that time: trainer.v1.trainer_mode: colocate_async",
        keys: staleness > 0 ? ["actor_rollout_ref.rollout.max_num_seqs", KEYS[1]!] : KEYS,
        filter: "tool_calls>0",
      };
    },
  },
  {
    name: "stale_lag",
    when: "With a lag, the importance weights leave half of the samples over five steps, or less (rollout_corr/rollout_is_eff_sample_size).",
    look: (run) => {
      const effective = run.values("rollout_corr/rollout_is_eff_sample_size");
      const share = run.mean("rollout_corr/rollout_is_eff_sample_size");
      if (readStaleness(run) === 0 || effective.length < 5 || share > 0.5) return null;
      return {
        severity: "medium",
        weight: 1 - share,
        sentence: `The policy moves away from conversations before it learns from them: their importance weights leave ${percent(share)} of the samples`,
        remedy: "Lower the lag (num_warmup_batches), or the learning rate",
        keys: [...KEYS, "actor_rollout_ref.actor.optim.lr"],
        filter: null,
      };
    },
  },
];
