const noRay = "there is no Ray: everything runs in one process";
const notSharded = "weights are not sharded";
const byBudget = "micro-batches are cut by ppo_max_token_len; the result does not depend on it";
const byMemory = "recomputation is chosen by the memory budget";
const noTorch = "there is no PyTorch";
const ggufVocabulary = "the vocabulary is the GGUF's";
const profiled = "trainer.profile_steps profiles whole steps";
const ownCheckpoints = "a checkpoint always holds all that a resumed run needs";
const ownServer = "it configures another framework's inference server; the rollout engine is llama.cpp";

/** Keys of other frameworks that cannot mean anything in one process, each with the reason. */
const ignored: Record<string, string> = {
  machine: "a run's config.json notes which kernels computed; CRIA_CPU_KERNEL chooses them",
  ray_kwargs: noRay,
  ray_init: noRay,
  global_profiler: profiled,
  transfer_queue: noRay,
  "critic.strategy": notSharded,
  "critic.enable": "a critic is made when the advantage estimator needs one",
  "critic.model.enable_gradient_checkpointing": byMemory,
  "critic.model.use_remove_padding": "rows of similar length share a micro-batch",
  "critic.model.fsdp_config": notSharded,
  "critic.model.tokenizer_path": ggufVocabulary,
  "critic.model.trust_remote_code": "a GGUF holds no code",
  "critic.ppo_micro_batch_size": byBudget,
  "critic.ppo_micro_batch_size_per_gpu": byBudget,
  "critic.forward_micro_batch_size": byBudget,
  "critic.forward_micro_batch_size_per_gpu": byBudget,
  "critic.use_dynamic_bsz": byBudget,
  "critic.ulysses_sequence_parallel_size": notSharded,
  "trainer.nnodes": "there is one machine",
  "trainer.n_gpus_per_node": "one device runs a model whole; trainer.device says which",
  "trainer.ray_wait_register_center_timeout": noRay,
  "trainer.use_legacy_worker_impl": noRay,
  "trainer.esi_redundant_time": "a run that is killed goes on from its newest checkpoint",
  "critic.checkpoint": ownCheckpoints,
  "critic.profiler": profiled,
  "critic.rollout_n": "the critic learns from the actor's rollouts",
  "trainer.balance_batch": "batches are always sorted by length before they are cut",
  "actor_rollout_ref.actor.fsdp_config": notSharded,
  "actor_rollout_ref.actor.strategy": notSharded,
  "actor_rollout_ref.actor.ulysses_sequence_parallel_size": notSharded,
  "actor_rollout_ref.actor.ppo_micro_batch_size": byBudget,
  "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": byBudget,
  "actor_rollout_ref.actor.use_dynamic_bsz": byBudget,
  "actor_rollout_ref.actor.use_torch_compile": noTorch,
  "actor_rollout_ref.actor.use_fused_kernels": noTorch,
  "actor_rollout_ref.actor.checkpoint": ownCheckpoints,
  "actor_rollout_ref.actor.profiler": profiled,
  "actor_rollout_ref.actor.entropy_checkpointing": byMemory,
  "actor_rollout_ref.actor.entropy_from_logits_with_chunking": byMemory,
  "actor_rollout_ref.actor.ppo_infer_max_token_len_per_gpu": byBudget,
  "actor_rollout_ref.actor.optim.total_training_steps": "trainer.total_training_steps says it",
  "actor_rollout_ref.ref": "the reference policy is the same model with its adapter off",
  "actor_rollout_ref.nccl_timeout": noRay,
  "actor_rollout_ref.hybrid_engine": "rollout and training always share the weights",
  "actor_rollout_ref.model.enable_gradient_checkpointing": byMemory,
  "actor_rollout_ref.model.use_remove_padding": "rows of similar length share a micro-batch",
  "actor_rollout_ref.model.enable_activation_offloading": byMemory,
  "actor_rollout_ref.model.use_fused_kernels": noTorch,
  "actor_rollout_ref.model.use_liger": noTorch,
  "actor_rollout_ref.model.tokenizer_path": ggufVocabulary,
  "actor_rollout_ref.model.use_shm": "the file is read directly",
  "actor_rollout_ref.model.trust_remote_code": "a GGUF holds no code",
  "actor_rollout_ref.rollout.name": "the rollout engine is llama.cpp",
  "actor_rollout_ref.rollout.mode": "rollouts are always asynchronous",
  "actor_rollout_ref.rollout.tensor_model_parallel_size": "there is no tensor parallelism",
  "actor_rollout_ref.rollout.gpu_memory_utilization": "the KV cache is sized by max_num_seqs and max_model_len",
  "actor_rollout_ref.rollout.log_prob_micro_batch_size": byBudget,
  "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": byBudget,
  "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz": byBudget,
  "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu": byBudget,
  "actor_rollout_ref.rollout.dtype": "the type is the GGUF's",
  "actor_rollout_ref.rollout.load_format": ownServer,
  "actor_rollout_ref.rollout.trace": "rollouts/<step>.jsonl has every conversation",
  "actor_rollout_ref.rollout.update_weights_bucket_megabytes": ownServer,
  "actor_rollout_ref.rollout.multi_stage_wake_up": ownServer,
  "actor_rollout_ref.rollout.disable_log_stats": ownServer,
  "actor_rollout_ref.rollout.enable_prefix_caching": ownServer,
  "actor_rollout_ref.rollout.cudagraph_capture_sizes": ownServer,
  "actor_rollout_ref.rollout.data_parallel_size": notSharded,
  "actor_rollout_ref.rollout.expert_parallel_size": notSharded,
  "actor_rollout_ref.rollout.pipeline_model_parallel_size": notSharded,
  "actor_rollout_ref.rollout.profiler": profiled,
  "actor_rollout_ref.rollout.layered_summon": ownServer,
  "actor_rollout_ref.rollout.enforce_eager": ownServer,
  "actor_rollout_ref.rollout.free_cache_engine": ownServer,
  "actor_rollout_ref.rollout.enable_chunked_prefill": ownServer,
  "actor_rollout_ref.rollout.max_num_batched_tokens": ownServer,
  "actor_rollout_ref.rollout.engine_kwargs": ownServer,
  "actor_rollout_ref.rollout.agent.num_workers": "conversations run as promises, not in workers",
  "data.val_batch_size": "validation runs as many conversations at once as the KV cache holds",
  "data.dataloader_num_workers": "rows are read once, at the start",
  "data.filter_overlong_prompts_workers": "prompts are measured in this process, and their lengths are cached",
  "data.tokenizer": ggufVocabulary,
  "data.trust_remote_code": "a GGUF holds no code",
  "data.use_shm": "the file is read directly",
  "data.return_raw_input_ids": "rows always carry their messages",
  "data.return_raw_chat": "rows always carry their messages",
  "data.return_multi_modal_inputs": "policies read text alone: rows with images or videos are refused",
  "reward_model.strategy": notSharded,
  "reward_model.use_reward_loop": noRay,
  "reward_model.enable_resource_pool": noRay,
  "reward_model.n_gpus_per_node": noRay,
  "reward_model.nnodes": noRay,
  "reward_model.max_length": "reward_model.model.max_model_len says it for each model",
  "reward_model.micro_batch_size": byBudget,
  "reward_model.micro_batch_size_per_gpu": byBudget,
  "reward_model.use_dynamic_bsz": byBudget,
  "reward_model.forward_max_token_len_per_gpu": byBudget,
  "reward_model.model.input_tokenizer": "conversations are rendered by the reward model's own chat template",
  "reward_model.model.fsdp_config": notSharded,
  "reward_model.model.use_remove_padding": "rows of similar length share a micro-batch",
  "reward_model.model.trust_remote_code": "a GGUF holds no code",
};

export function listIgnoredKeys(): string[] {
  return Object.keys(ignored);
}

/** Removes such keys from a raw config; returns one warning for each reason, naming its keys. */
export function dropIgnoredKeys(raw: Record<string, unknown>): string[] {
  const found = new Map<string, string[]>();
  for (const [path, reason] of Object.entries(ignored)) {
    if (!removeKey(raw, path).found) continue;
    const paths = found.get(reason);
    if (paths) paths.push(path);
    else found.set(reason, [path]);
  }
  return [...found].map(([reason, paths]) => `${paths.join(", ")} has no effect: ${reason}`);
}

/** Removes a dotted key from a raw config, and tells what stood there. */
export function removeKey(raw: Record<string, unknown>, path: string): { found: boolean; value?: unknown } {
  const parts = path.split(".");
  const last = parts.pop()!;
  let node: unknown = raw;
  for (const part of parts) node = isMapping(node) ? node[part] : undefined;
  if (!isMapping(node) || !Object.hasOwn(node, last)) return { found: false };
  const value = node[last];
  delete node[last];
  return { found: true, value };
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
