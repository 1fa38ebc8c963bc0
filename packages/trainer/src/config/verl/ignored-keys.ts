import { isMapping, removeKey, type SetAside } from "../raw-config.js";

const noRay = "there is no Ray: everything runs in one process";
const notSharded = "weights are not sharded";
const byBudget = "micro-batches are cut by ppo_max_token_len; the result does not depend on it";
const byMemory = "recomputation is chosen by the memory budget";
const noTorch = "there is no PyTorch";
const ggufVocabulary = "the vocabulary is the GGUF's";
const profiled = "trainer.profile_steps profiles whole steps";
const ownCheckpoints = "a checkpoint always holds all that a resumed run needs";
const ggufModel = "a model is what its GGUF says";
const noExperts = "models with experts are not trained here";
const noSound = "policies read texts and see images: rows with sound or videos are refused";
const byProjector = "images are cut as the projector's file says";
const shared = "rollouts and training share the weights in one process: nothing is sent";
const noDispatch = "conversations are judged as they end, several at once, in this process";
const ownSandbox = "programs run in Cria's own sandboxes: nothing is sent to a server";
const inTurns = "rollouts, updates and validations take turns";
const noSkip = "rollouts are never replayed from a dump";
const hydra = "it says how Hydra and Python build the configuration";
const ownServer = "it configures another framework's inference server; the rollout engine is llama.cpp";

/** Keys of other frameworks that cannot mean anything in one process, each with the reason. */
const ignored: Record<string, string> = {
  machine: "a run's config.json notes which kernels computed; CRIA_CPU_KERNEL chooses them",
  ray_kwargs: noRay,
  ray_init: noRay,
  global_profiler: profiled,
  transfer_queue: noRay,
  defaults: hydra,
  hydra: hydra,
  sandbox_fusion: ownSandbox,
  "async_training.partial_rollout":
    "no conversation is cut by an update of the weights: there is nothing to go on with",
  "async_training.use_trainer_do_validate": inTurns,
  "async_training.parallel_validate_and_rollout": inTurns,
  "async_training.checkpoint_engine": shared,
  "async_training.use_dynamic_resource_scaling": "there is one machine",
  "async_training.dynamic_scaling_policy": "there is one machine",
  "async_training.dynamic_scaling_deactivate_ratio": "there is one machine",
  "async_training.dynamic_scaling_enable_rebalance": "there is one machine",
  "rollout.nnodes": "there is one machine",
  "rollout.n_gpus_per_node": "one device runs a model whole; trainer.device says which",
  "rollout.n": "actor_rollout_ref.rollout.n says it",
  "rollout.max_concurrent_samples_per_replica": "actor_rollout_ref.rollout.max_num_seqs says it",
  "critic.strategy": notSharded,
  "critic.megatron": notSharded,
  "critic.fsdp": notSharded,
  "critic.nccl_timeout": notSharded,
  "critic.data_loader_seed": "actor_rollout_ref.rollout.seed decides the order",
  "critic.forward_max_token_len_per_gpu": byBudget,
  "critic.optim.total_training_steps": "trainer.total_training_steps says it",
  "critic.optim.zero_indexed_step": "the first step has the learning rate of step 1, not 0",
  "critic.model.enable_activation_offload": byMemory,
  "critic.model.tiled_mlp": byMemory,
  "critic.model.fused_kernel_options": noTorch,
  "critic.model.use_fused_kernels": noTorch,
  "critic.model.use_liger": noTorch,
  "critic.model.hf_config_path": ggufModel,
  "critic.model.override_config": ggufModel,
  "critic.model.use_shm": "the file is read directly",
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
  "data.micro_batch_size": byBudget,
  "data.micro_batch_size_per_gpu": byBudget,
  "data.max_token_len_per_gpu": byBudget,
  "data.use_dynamic_bsz": byBudget,
  "data.balance_dp_token": notSharded,
  "data.pad_mode": "rows of similar length share a micro-batch",
  "data.multiturn.enable": "a row is always a conversation, of as many turns as it has",
  "model.enable_gradient_checkpointing": byMemory,
  "model.fsdp_config": notSharded,
  "model.strategy": notSharded,
  "model.trust_remote_code": "a GGUF holds no code",
  "model.use_liger": noTorch,
  "model.use_shm": "the file is read directly",
  ulysses_sequence_parallel_size: notSharded,
  use_remove_padding: "rows of similar length share a micro-batch",
  "algorithm.filter_groups.max_inflight_gen_batches": "batches of prompts are rolled out one after the other",
  "trainer.n_gpus_per_node": "one device runs a model whole; trainer.device says which",
  "trainer.ray_wait_register_center_timeout": noRay,
  "trainer.use_legacy_worker_impl": noRay,
  "trainer.use_v1": "there is one trainer",
  "trainer.max_critic_ckpt_to_keep": "a checkpoint holds actor and critic: trainer.max_actor_ckpt_to_keep counts it",
  "trainer.esi_redundant_time": "a run that is killed goes on from its newest checkpoint",
  "critic.checkpoint": ownCheckpoints,
  "critic.profiler": profiled,
  "critic.rollout_n": "the critic learns from the actor's rollouts",
  "trainer.balance_batch": "batches are always sorted by length before they are cut",
  "actor_rollout_ref.actor.fsdp_config": notSharded,
  "actor_rollout_ref.actor.strategy": notSharded,
  "actor_rollout_ref.actor.megatron": notSharded,
  "actor_rollout_ref.actor.nccl_timeout": notSharded,
  "actor_rollout_ref.actor.data_loader_seed": "actor_rollout_ref.rollout.seed decides the order",
  "actor_rollout_ref.actor.calculate_entropy": "the entropy of what is evaluated is always measured",
  "actor_rollout_ref.actor.entropy_from_logits_chunk_size": byMemory,
  "actor_rollout_ref.actor.pad_to_length": byBudget,
  "actor_rollout_ref.actor.use_prefix_grouper": byBudget,
  "actor_rollout_ref.actor.use_remove_padding": "rows of similar length share a micro-batch",
  "actor_rollout_ref.actor.rollout_n": "actor_rollout_ref.rollout.n says it",
  "actor_rollout_ref.actor.optim.zero_indexed_step": "the first step has the learning rate of step 1, not 0",
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
  "actor_rollout_ref.ref":
    "the reference policy has no settings of its own: with LoRA it is the model with its adapter off, else a second copy",
  "actor_rollout_ref.nccl_timeout": noRay,
  "actor_rollout_ref.hybrid_engine": "rollout and training always share the weights",
  "actor_rollout_ref.model.enable_gradient_checkpointing": byMemory,
  "actor_rollout_ref.model.use_remove_padding": "rows of similar length share a micro-batch",
  "actor_rollout_ref.model.enable_activation_offloading": byMemory,
  "actor_rollout_ref.model.use_fused_kernels": noTorch,
  "actor_rollout_ref.model.use_liger": noTorch,
  "actor_rollout_ref.model.fused_kernel_options": noTorch,
  "actor_rollout_ref.model.enable_activation_offload": byMemory,
  "actor_rollout_ref.model.tiled_mlp": byMemory,
  "actor_rollout_ref.model.hf_config_path": ggufModel,
  "actor_rollout_ref.model.override_config": ggufModel,
  "actor_rollout_ref.model.torch_dtype": ggufModel,
  "actor_rollout_ref.model.lora.merge": "the sampler always runs the model and its adapter together",
  "actor_rollout_ref.model.tokenizer_path": ggufVocabulary,
  "actor_rollout_ref.model.use_shm": "the file is read directly",
  "actor_rollout_ref.model.trust_remote_code": "a GGUF holds no code",
  "actor_rollout_ref.rollout.name": "the rollout engine is llama.cpp",
  "actor_rollout_ref.rollout.mode": "rollouts are always asynchronous",
  "actor_rollout_ref.rollout.agent.custom_async_server": ownServer,
  "actor_rollout_ref.rollout.disaggregation": ownServer,
  "actor_rollout_ref.rollout.sglang_engine_mode": ownServer,
  "actor_rollout_ref.rollout.server": ownServer,
  "actor_rollout_ref.rollout.scheduling_policy": ownServer,
  "actor_rollout_ref.rollout.skip_tokenizer_init": ownServer,
  "actor_rollout_ref.rollout.checkpoint_engine": shared,
  "actor_rollout_ref.rollout.nnodes": "there is one machine",
  "actor_rollout_ref.rollout.n_gpus_per_node": "one device runs a model whole; trainer.device says which",
  "actor_rollout_ref.rollout.full_determinism": "actor_rollout_ref.rollout.deterministic says it",
  "actor_rollout_ref.rollout.logprobs_mode":
    "logprobs are those of the whole vocabulary at rollout.temperature, for sampler and trainer",
  "actor_rollout_ref.rollout.moe_load_balance_metrics_interval": noExperts,
  "actor_rollout_ref.rollout.over_sample_rate": "every conversation of a step is waited for: none is cut off",
  "actor_rollout_ref.rollout.prometheus": "metrics.jsonl and the trackers have the metrics",
  "actor_rollout_ref.rollout.quantization": "rollouts run on the weights of the GGUF as they are",
  "actor_rollout_ref.rollout.quantization_config_file": "rollouts run on the weights of the GGUF as they are",
  "actor_rollout_ref.rollout.skip_dump_dir": noSkip,
  "actor_rollout_ref.rollout.limit_images": "a conversation shows as many images as fit into its tokens",
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
  "data.audio_key": noSound,
  "data.image_patch_size": byProjector,
  "data.mm_processor_kwargs": byProjector,
  "data.gen_batch_size": "prompts are rolled out data.train_batch_size at a time, until the batch is full",
  "data.return_raw_input_ids": "rows always carry their messages",
  "data.return_raw_chat": "rows always carry their messages",
  "data.return_multi_modal_inputs": "images stay files until the engine encodes them, each once",
  "reward_model.strategy": notSharded,
  "reward_model.use_reward_loop": noRay,
  "reward_model.enable_resource_pool": noRay,
  "reward_model.n_gpus_per_node": noRay,
  "reward_model.nnodes": noRay,
  "reward_model.num_workers": noDispatch,
  "reward.num_workers": noDispatch,
  "reward.reward_model.enable_resource_pool": noRay,
  "reward.reward_model.n_gpus_per_node": noRay,
  "reward.reward_model.nnodes": noRay,
  "reward_model.rollout":
    "max_model_len and max_tokens of reward_model.model say it for each model; no server is started",
  "reward.reward_model.rollout":
    "max_model_len and max_tokens of reward_model.model say it for each model; no server is started",
  "reward_model.sandbox_fusion": ownSandbox,
  "reward.sandbox_fusion": ownSandbox,
  "reward_model.reward_kwargs.max_resp_len": "the overlong buffer ends where the response must",
  "reward.reward_kwargs.max_resp_len": "the overlong buffer ends where the response must",
  "reward_model.profiler": profiled,
  "reward_model.ulysses_sequence_parallel_size": notSharded,
  "reward_model.model.override_config": ggufModel,
  "reward_model.model.use_fused_kernels": noTorch,
  "reward_model.model.use_shm": "the file is read directly",
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

/** Why a key has no effect; undefined for any other. */
export function findIgnoredReason(key: string): string | undefined {
  return Object.hasOwn(ignored, key) ? ignored[key] : undefined;
}

/** Hydra's name of a Python class, in any section. */
export const PYTHON_TARGET = "_target_";

/** Removes such keys from a raw config; returns them with their reasons. */
export function dropIgnoredKeys(raw: Record<string, unknown>): SetAside[] {
  return Object.entries(ignored)
    .filter(([key]) => removeKey(raw, key).found)
    .map(([key, reason]) => ({ key, reason }));
}

/** Removes the names of Python classes that Hydra puts into sections. */
export function dropPythonTargets(node: unknown, path: readonly string[] = []): SetAside[] {
  if (!isMapping(node)) return [];
  const found = Object.entries(node).flatMap(([key, value]) => dropPythonTargets(value, [...path, key]));
  if (!Object.hasOwn(node, PYTHON_TARGET)) return found;
  delete node[PYTHON_TARGET];
  return [{ key: [...path, PYTHON_TARGET].join("."), reason: hydra }, ...found];
}
