import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, expect, it } from "vitest";
import { openTinySession } from "../testing/tiny-session.js";
import { trainSession } from "./train-session.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** The field's names, as people's dashboards have them. */
const NAMES = `
critic/{score,rewards,advantages,returns,values}/{mean,max,min} critic/{vf_loss,vf_clipfrac,vf_explained_var,grad_norm}
actor/{pg_loss,kl_loss,kl_coef,entropy,pg_clipfrac,pg_clipfrac_lower,ppo_kl,grad_norm,lr}
actor/{reward_kl_penalty,reward_kl_penalty_coeff} response_length/{mean,max,min,clip_ratio}
prompt_length/{mean,max,min,clip_ratio} response/aborted_ratio num_turns/{mean,max,min} tool_call_counts/{mean,max,min}
timing_s/{gen,reward,old_log_prob,ref,values,adv,update_critic,update_actor,testing,save_checkpoint,step}
timing_s/agent_loop/{generate_sequences,tool_calls}/{mean,max,min}
timing_per_token_ms/{gen,ref,values,adv,update_critic,update_actor} perf/{throughput,time_per_step,total_num_tokens}
training/{global_step,epoch} training/{rollout_probs_diff_max,rollout_probs_diff_mean,rollout_probs_diff_std}
training/rollout_actor_probs_pearson_corr rollout_corr/{kl,k3_kl,rollout_is_mean,rollout_is_eff_sample_size}
engine/{prefill_tokens,reused_tokens,decode_tokens}
val-core/test/acc/{mean@4,best@4/mean,worst@4/mean,maj@4/mean}`;

/** "a/{b,c}/d" -> "a/b/d", "a/c/d". */
function expand(pattern: string): string[] {
  const match = /^(.*?)\{(.*?)\}(.*)$/.exec(pattern);
  return match ? match[2]!.split(",").flatMap((part) => expand(`${match[1]}${part}${match[3]}`)) : [pattern];
}

it("a step with everything on has every metric of the contract", async () => {
  const session = await openTinySession(models, {
    reward: "return { score: text.length % 3, acc: text.length % 2, pred: text[0] ?? '' };",
    algorithm: { adv_estimator: "gae", use_kl_in_reward: true, rollout_correction: { rollout_is: "token" } },
    actor: { use_kl_loss: true },
    rollout: { val_kwargs: { n: 4, do_sample: true, top_k: 5 } },
    data: { val_files: "rows.jsonl" },
    trainer: { total_training_steps: 1, val_before_train: false },
  });
  const { path } = await trainSession(session, {
    configFolder: session.folder,
    silent: true,
    say: () => undefined,
    trackers: [],
  });
  const metrics = JSON.parse(readFileSync(join(path, "metrics.jsonl"), "utf8")) as Record<string, number>;
  const names = NAMES.trim().split(/\s+/).flatMap(expand);
  expect(names.length).toBeGreaterThan(80);
  expect(names.filter((name) => !Number.isFinite(metrics[name]))).toEqual([]);
});
