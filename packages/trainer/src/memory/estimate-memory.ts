import { FORWARD_KL_TOPK } from "@cria/algorithms/internal";
import type { GgufHeader } from "@cria/engine";
import type { TowerShape } from "@cria/engine/internal";
import { defaultImageMemory, estimateLargestEncoding } from "@cria/engine/internal";
import { countSamples, readContextSize, readLag, usesLora } from "../config/derived-values.js";
import { namedLayers } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";

/** One item of memory. */
export interface MemoryItem {
  name: string;
  bytes: number;
  /** Its composition, in numbers. */
  detail: string;
  /** The config key that reduces it. */
  key: string | null;
}

/** The shape of a model, read from a GGUF's header. */
export interface ModelShape {
  architecture: string;
  layers: number;
  embedding: number;
  feedForward: number;
  heads: number;
  kvHeads: number;
  /** Layers with attention, whose keys and values are kept. */
  kvLayers: number;
  headSize: number;
  /** Layers with a state in place of attention: values of a token, and of a layer's state. */
  states?: { channels: number; outputs: number; state: number };
  /** Experts that a token chooses in place of the feed-forward's matrices, and their width. */
  experts?: { used: number; feedForward: number };
  /** Whether a gate of each head's output stands behind its queries. */
  gatesQueries?: boolean;
  vocabulary: number;
  contextLength: number;
  parameters: number;
  fileBytes: number;
  /** Linear layers of the blocks, which LoRA can adapt; with a matrix for each of so many experts. */
  linear: { name: string; inputs: number; outputs: number; experts?: number }[];
}

/** Bytes of the file, and its tower; null while the file is missing. */
export interface ProjectorNeed {
  bytes: number;
  tower: TowerShape | null;
}

const LINEAR =
  /^blk\.\d+\.(attn_q|attn_k|attn_v|attn_qkv|attn_gate|attn_output|ssm_(?:in|alpha|beta|out)|shortconv\.in_proj|shortconv\.out_proj|ffn_gate|ffn_up|ffn_down|ffn_gate_inp|ffn_(?:gate|up|down)_exps)\.weight$/;

export function readModelShape({ metadata, tensors }: GgufHeader): ModelShape {
  const architecture = String(metadata.get("general.architecture")?.value);
  const read = (key: string, fallback = 0) => {
    const value = metadata.get(`${architecture}.${key}`)?.value;
    return typeof value === "number" || typeof value === "bigint" ? Number(value) : fallback;
  };
  const heads = read("attention.head_count", 1);
  const embedding = read("embedding_length");
  const headSize = read("attention.key_length", embedding / heads);
  // A file may have layers behind those that compute, which only draft tokens.
  const layers = read("block_count") - read("nextn_predict_layers");
  // In hybrid models only some layers have attention.
  const keys = tensors.filter(({ name }) => Number(/^blk\.(\d+)\.attn_k\.weight$/.exec(name)?.[1] ?? layers) < layers);
  const shapeOf = (part: string) => tensors.find(({ name }) => name.endsWith(`.${part}.weight`))?.shape ?? [0, 0];
  const [outputs, channels] = [shapeOf("ssm_out")[0]!, shapeOf("ssm_conv1d")[1]!];
  const expertWidth = shapeOf("ffn_down_exps")[0]!;
  const count = (shape: readonly number[]) => shape.reduce((product, n) => product * n, 1);
  return {
    architecture,
    layers,
    embedding,
    feedForward: read("feed_forward_length"),
    heads,
    kvHeads: keys.length > 0 ? keys[0]!.shape[1]! / headSize : read("attention.head_count_kv", heads),
    kvLayers: keys.length > 0 ? keys.length : layers,
    headSize,
    ...(outputs > 0 ? { states: { channels, outputs, state: outputs * read("ssm.state_size") } } : {}),
    ...(expertWidth > 0 ? { experts: { used: read("expert_used_count"), feedForward: expertWidth } } : {}),
    gatesQueries: shapeOf("attn_q")[1] === 2 * heads * headSize,
    vocabulary: tensors.find(({ name }) => name === "token_embd.weight")?.shape[1] ?? 0,
    contextLength: read("context_length"),
    parameters: tensors.reduce((sum, { shape }) => sum + count(shape), 0),
    fileBytes: tensors.reduce((sum, { bytes }) => sum + bytes, 0),
    linear: tensors
      .filter(({ name }) => LINEAR.test(name))
      .map(({ name, shape: [inputs = 1, outputs = 1, experts] }) => ({
        name: LINEAR.exec(name)![1]!,
        inputs,
        outputs,
        ...(experts === undefined ? {} : { experts }),
      })),
  };
}

/** The engine's defaults, and sizes that its native code fixes. */
const ACTIVATION_BUDGET = 2 * 2 ** 30;
const LOGITS_CHUNK = 128 << 20;
/** Node, the addon and llama.cpp's libraries, before a model is loaded; measured. */
const PROCESS = 110e6;

/** Name of the item of the versions that a lag keeps. */
export const KEPT_VERSIONS = "kept versions";

/** A model that is loaded beside the policy, and scores whole conversations; guided, it samples turns too. */
export interface OtherModel {
  name: string;
  key: string;
  shape: ModelShape;
}

/**
 * The memory of a training at its peak, the largest item first. An estimate: the items are computed, not measured. On
 * the calculator example it was 21% and 4% above the measured peak (235 MB, and 825 MB with a KV cache of 604 MB).
 * @param beside the projector with which the model sees images (null: it reads only text), and teachers.
 */
export function estimateMemory(
  model: ModelShape,
  config: TrainConfig,
  { projector = null, teachers = [] }: { projector?: ProjectorNeed | null; teachers?: readonly OtherModel[] } = {},
): MemoryItem[] {
  const { actor, rollout } = config.actor_rollout_ref;
  const lora = usesLora(config);
  const context = readContextSize(config);
  // Cells come in multiples of 256, plus one.
  const cells = Math.ceil((context + 1) / 256) * 256;
  const { layers, embedding, kvLayers, vocabulary } = model;
  const trained = lora ? countAdapter(model, config) : model.parameters;
  const perToken = countValues(model);
  // A conversation is never cut: the longest one is a micro-batch by itself.
  const rows = Math.max(actor.ppo_max_token_len ?? chooseMicroBatchTokens(model), context);
  const chunk = Math.max(16, Math.floor(LOGITS_CHUNK / (4 * vocabulary)));
  // Gradients of a micro-batch, and the accumulated ones; two moments; the adapter itself.
  const copies = lora ? 5 : 4;
  const decoded = Math.max(512, rollout.max_num_seqs);
  const items: MemoryItem[] = [
    {
      name: "weights",
      bytes: model.fileBytes,
      detail: `${format(model.parameters)} parameters, as in the file`,
      key: "actor_rollout_ref.model.path",
    },
    {
      name: "KV cache",
      bytes: rollout.max_num_seqs * cells * countKept(model, rollout.kv_cache_dtype),
      detail: `${rollout.max_num_seqs} conversations x ${cells} tokens x ${kvLayers} layers, ${rollout.kv_cache_dtype.toUpperCase()}`,
      key: "actor_rollout_ref.rollout.max_num_seqs",
    },
    {
      name: lora ? "adapter, gradients, moments" : "gradients, moments",
      bytes: copies * 4 * trained,
      detail: `${format(trained)} trained parameters x ${copies}, F32`,
      key: lora ? "actor_rollout_ref.model.lora_rank" : "actor_rollout_ref.model.lora_rank (above 0: LoRA)",
    },
    {
      name: "activations",
      bytes: Math.max(perToken * rows * 4, Math.min(ACTIVATION_BUDGET, perToken * rows * 4 * layers)),
      detail: `micro-batches of ${rows} tokens; layers beyond 2 GiB are recomputed`,
      key: "actor_rollout_ref.actor.ppo_max_token_len",
    },
    {
      name: "layer inputs",
      bytes: (layers + 4) * embedding * rows * 4,
      detail: `${layers} layers x ${rows} tokens x ${embedding}`,
      key: "actor_rollout_ref.actor.ppo_max_token_len",
    },
    {
      name: "logits",
      bytes: 4 * vocabulary * (Math.min(chunk, rows) + decoded),
      detail: `vocabulary of ${vocabulary}, for training in chunks and for sampling`,
      key: "actor_rollout_ref.rollout.max_num_seqs",
    },
    { name: "process", bytes: PROCESS, detail: "Node and llama.cpp's libraries", key: null },
  ];
  if (projector !== null) {
    const key = "actor_rollout_ref.model.mmproj";
    const kept = "unused vectors and files that stay in memory, at most";
    items.push(
      { name: "projector", bytes: projector.bytes, detail: "as in the file", key },
      { name: "images", bytes: defaultImageMemory, detail: kept, key },
    );
    const tokens = config.actor_rollout_ref.model.image_max_tokens ?? undefined;
    if (projector.tower)
      items.push({
        name: "encoding an image",
        bytes: estimateLargestEncoding(projector.tower, tokens),
        detail: "one at a time, of the largest size that the projector takes",
        key: "actor_rollout_ref.model.image_max_tokens",
      });
  }
  const { states } = model;
  const stateLayers = layers - kvLayers;
  if (states)
    items.push({
      name: "states",
      bytes: rollout.max_num_seqs * countStates(model),
      detail: `${rollout.max_num_seqs} conversations x ${stateLayers} layers in place of attention, F32`,
      key: "actor_rollout_ref.rollout.max_num_seqs",
    });
  if (config.algorithm.adv_estimator === "gae") {
    items.push({
      name: "critic",
      bytes: model.fileBytes + copies * 4 * trained + perToken * rows * 4 * Math.min(2, layers),
      detail: "a second copy of the model, with its training state",
      key: "algorithm.adv_estimator (others need no critic)",
    });
  }
  for (const { name, key, shape } of teachers) {
    const perToken = countValues(shape);
    items.push({
      name: `teacher ${name}`,
      // As the policy's own pass, one layer at a time.
      bytes: shape.fileBytes + 4 * (perToken * rows + shape.vocabulary * Math.min(chunk, rows)),
      detail: `${format(shape.parameters)} parameters, as in the file, and its pass over micro-batches of ${rows} tokens`,
      key,
    });
    if (config.distillation.guided.share > 0)
      items.push({
        name: `conversations of teacher ${name}`,
        bytes:
          rollout.max_num_seqs * (cells * countKept(shape, "f32") + countStates(shape)) +
          4 * shape.vocabulary * decoded,
        detail: `${rollout.max_num_seqs} conversations x ${cells} tokens x ${shape.kvLayers} layers, F32, in which it samples turns`,
        key: "actor_rollout_ref.rollout.max_num_seqs",
      });
  }
  const { enabled, distillation_loss } = config.distillation;
  if (enabled && distillation_loss.loss_mode === FORWARD_KL_TOPK) {
    const conversations = config.data.train_batch_size * countSamples(rollout);
    items.push({
      name: "teacher's likeliest tokens",
      // An id and a logprob, kept for the step and laid out for an update.
      bytes: 16 * conversations * context * distillation_loss.topk,
      detail: `${conversations} conversations x ${context} tokens x ${distillation_loss.topk}, with their logprobs`,
      key: "distillation.distillation_loss.topk",
    });
  }
  const { lora_roles: roles } = config.actor_rollout_ref.model;
  const adapters = roles?.length ?? 1;
  if (roles)
    items.push({
      name: "adapters of roles",
      // A version of each that samples; values and moments of those that wait for their turn to train.
      bytes: (adapters + 3 * (adapters - 1)) * 4 * trained,
      detail: `${adapters} that sample, and ${adapters - 1} with moments beside the one that trains`,
      key: "actor_rollout_ref.model.lora_roles",
    });
  const lag = readLag(config);
  if (lag > 0)
    items.push({
      name: KEPT_VERSIONS,
      bytes: (lag + 1) * adapters * 4 * trained,
      detail: `of ${lora ? (roles ? "each adapter" : "the adapter") : "all weights"}, ${lag + 1} for a lag of ${lag}`,
      key: `trainer.v1.${config.trainer.v1.trainer_mode}.num_warmup_batches`,
    });
  if ((actor.use_kl_loss || config.algorithm.use_kl_in_reward) && !lora)
    items.push({
      name: "reference policy",
      bytes: model.fileBytes,
      detail: "a frozen copy, as full training with a KL term needs",
      key: "actor_rollout_ref.actor.use_kl_loss",
    });
  return items.sort((a, b) => b.bytes - a.bytes);
}

/** Bytes of a token's keys and values, in all layers. */
function countKept({ kvLayers, kvHeads, headSize }: ModelShape, type: keyof typeof KV_BYTES): number {
  return kvLayers * 2 * kvHeads * headSize * KV_BYTES[type];
}

/** Bytes of a cached value; Q8_0 has a scale in F16 for each 32. */
const KV_BYTES = { f32: 4, f16: 2, q8_0: 34 / 32 };

/** Bytes of a conversation's states, in the layers that have one in place of attention. */
function countStates({ layers, kvLayers, states }: ModelShape): number {
  return states ? (layers - kvLayers) * (states.state + 3 * states.channels) * 4 : 0;
}

/** Values that a layer computes of each token, as `activation_bytes` of the native code counts them. */
function countValues(model: ModelShape): number {
  const { embedding, headSize, heads, kvHeads, feedForward, states, experts, gatesQueries } = model;
  const attends = (gatesQueries ? 7 : 4) * headSize * heads + 6 * headSize * kvHeads + heads;
  // A state is kept for every 64 tokens.
  const keepsStates = states ? 5 * states.channels + 6 * states.outputs + states.state / 64 : 0;
  const feeds = experts ? experts.used * (3 * experts.feedForward + embedding) : 3 * feedForward;
  return 3 * embedding + Math.max(attends, keepsStates) + feeds;
}

function countAdapter(model: ModelShape, config: TrainConfig): number {
  const { lora_rank, target_modules } = config.actor_rollout_ref.model;
  const rank = Math.max(1, lora_rank);
  return model.linear
    .filter(({ name }) => (target_modules === "all-linear" ? !namedLayers.has(name) : target_modules.includes(name)))
    .reduce((sum, { inputs, outputs, experts = 1 }) => sum + rank * (inputs + outputs) * experts, 0);
}

/** The engine's default when the config does not set it. */
function chooseMicroBatchTokens({ layers, embedding }: ModelShape): number {
  return Math.min(8192, Math.max(512, Math.floor((128 << 20) / (layers * embedding * 4 * 24))));
}

function format(count: number): string {
  return count >= 1e9
    ? `${(count / 1e9).toFixed(2)}B`
    : count >= 1e6
      ? `${(count / 1e6).toFixed(2)}M`
      : `${(count / 1e3).toFixed(1)}k`;
}
