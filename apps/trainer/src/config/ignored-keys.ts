/** Keys of other frameworks that cannot mean anything in one process, with the reason shown once. */
const ignored: Record<string, string> = {
  ray_kwargs: "there is no Ray: everything runs in one process",
  ray_init: "there is no Ray: everything runs in one process",
  "trainer.nnodes": "there is one machine",
  "trainer.n_gpus_per_node": "the device is chosen at load",
  "actor_rollout_ref.actor.fsdp_config": "weights are not sharded",
  "actor_rollout_ref.actor.strategy": "weights are not sharded",
  "actor_rollout_ref.ref": "the reference policy is the same model with its adapter off",
  "actor_rollout_ref.hybrid_engine": "rollout and training always share the weights",
  "actor_rollout_ref.rollout.name": "the rollout engine is llama.cpp",
  "actor_rollout_ref.rollout.mode": "rollouts are always asynchronous",
  "actor_rollout_ref.rollout.tensor_model_parallel_size": "there is no tensor parallelism",
  "actor_rollout_ref.rollout.gpu_memory_utilization": "the KV cache is sized by max_num_seqs and max_model_len",
  "actor_rollout_ref.rollout.agent.num_workers": "conversations run as promises, not in workers",
};

/** Removes such keys from a raw config; returns a warning for each. */
export function dropIgnoredKeys(raw: Record<string, unknown>): string[] {
  const warnings: string[] = [];
  for (const [path, reason] of Object.entries(ignored)) {
    const parts = path.split(".");
    let node: Record<string, unknown> | undefined = raw;
    for (const part of parts.slice(0, -1)) node = node?.[part] as Record<string, unknown> | undefined;
    const key = parts.at(-1)!;
    if (node && typeof node === "object" && key in node) {
      delete node[key];
      warnings.push(`${path} has no effect: ${reason}`);
    }
  }
  return warnings;
}
