import type { ProjectorBuilder, ProjectorShape } from "./projector-builder.js";

/** llama.cpp's names of projector families, in `clip.projector_type`. */
export type ProjectorFamily = keyof typeof projectorFamilies;

/**
 * Differences between a tower and a plain ViT: patches of one picture, biases everywhere, layer norms, a norm behind
 * its layers.
 */
interface Tower {
  /** Number of vectors in the position table; 0 if attention rotates instead. */
  positions: number;
  classToken?: boolean;
  patchBias?: boolean;
  /** Pictures that a patch convolves: 2 if neighbouring frames of a film share one patch. */
  frames?: number;
  rms?: boolean;
  bias?: boolean;
  gate?: boolean;
  fusedQkv?: boolean;
  layerScale?: boolean;
  normBefore?: boolean;
  normBehind?: boolean;
  /** Activation of the feed-forward part; those of the projectors themselves are fixed. */
  activation?: "gelu" | "silu" | "gelu_quick";
}

function addTower(build: ProjectorBuilder, shape: ProjectorShape, tower: Tower): void {
  const { imageSize, patchSize, embedding, layers, heads, feedForward, projection } = shape;
  const { bias = true, patchBias = true, normBehind = true, activation = "gelu" } = tower;
  const linear = bias ? build.linear.bind(build) : build.weight.bind(build);
  const norm = tower.rms ? build.rmsNorm.bind(build) : build.norm.bind(build);
  build.count("image_size", imageSize);
  build.count("patch_size", patchSize);
  build.count("embedding_length", embedding);
  build.count("feed_forward_length", feedForward);
  build.count("block_count", layers);
  build.count("projection_dim", projection);
  build.count("attention.head_count", heads);
  if (activation !== "gelu_quick") build.metadata[`clip.use_${activation}`] = { type: "bool", value: true };
  const scale = 1 / Math.sqrt(3 * patchSize * patchSize);
  for (let i = 0; i < (tower.frames ?? 1); i++)
    build.add(`v.patch_embd.weight${i ? `.${i}` : ""}`, [patchSize, patchSize, 3, embedding], scale);
  if (patchBias) build.add("v.patch_embd.bias", [embedding], 0.1);
  if (tower.classToken) build.add("v.class_embd", [embedding], 0.3);
  if (tower.positions) build.add("v.position_embd.weight", [embedding, tower.positions], 0.3);
  if (tower.normBefore) norm("v.pre_ln", embedding);
  for (let i = 0; i < layers; i++) {
    const name = (part: string) => `v.blk.${i}.${part}`;
    if (tower.fusedQkv) linear(name("attn_qkv"), embedding, 3 * embedding);
    else for (const part of ["attn_q", "attn_k", "attn_v"]) linear(name(part), embedding, embedding);
    linear(name("attn_out"), embedding, embedding);
    norm(name("ln1"), embedding);
    norm(name("ln2"), embedding);
    if (tower.layerScale) for (const part of ["ls1", "ls2"]) build.add(name(`${part}.weight`), [embedding], 0.1, 1);
    if (tower.gate) linear(name("ffn_gate"), embedding, feedForward);
    linear(name("ffn_up"), embedding, feedForward);
    linear(name("ffn_down"), feedForward, embedding);
  }
  if (normBehind) norm("v.post_ln", embedding);
}

const countPatches = ({ imageSize, patchSize }: ProjectorShape) => (imageSize / patchSize) ** 2;

/** The tested families of projectors, with the structure of their towers and projectors in published files. */
export const projectorFamilies = {
  /** LLaVA: each patch is a vector. llama.cpp leaves the tower's last layer out. */
  mlp: {
    defaults: {},
    describe(build, shape) {
      const { embedding, projection, scale, classToken, tileSizes } = shape;
      addTower(build, shape, {
        positions: countPatches(shape) + Number(classToken),
        classToken,
        patchBias: !classToken,
        normBefore: classToken,
        normBehind: false,
        activation: classToken ? "gelu_quick" : "gelu",
      });
      if (tileSizes.length) {
        build.metadata["clip.vision.image_grid_pinpoints"] = { type: "array", of: "int32", value: [...tileSizes] };
        build.metadata["clip.vision.mm_patch_merge_type"] = { type: "string", value: "spatial_unpad" };
        build.add("v.image_newline", [projection], 0.3);
      }
      build.linear("mm.0", embedding, projection);
      build.linear("mm.2", projection, projection, scale);
    },
  },
  /** SmolVLM: tiles and the whole picture, 2 x 2 patches per vector. */
  idefics3: {
    defaults: {},
    describe(build, shape) {
      const { embedding, projection, scale, imageSize } = shape;
      addTower(build, shape, { positions: countPatches(shape) });
      build.count("projector.scale_factor", 2);
      build.count("preproc_image_size", 2 * imageSize);
      build.weight("mm.model.fc", 4 * embedding, projection, scale);
    },
  },
  /** InternVL: tiles and the whole picture, 2 x 2 patches per vector. */
  internvl: {
    defaults: {},
    describe(build, shape) {
      const { embedding, projection, scale } = shape;
      const positions = countPatches(shape) + 1;
      addTower(build, shape, { positions, classToken: true, layerScale: true, normBehind: false });
      build.count("projector.scale_factor", 2);
      build.count("preproc_min_tiles", 1);
      build.count("preproc_max_tiles", 4);
      build.norm("mm.model.mlp.0", 4 * embedding);
      build.linear("mm.model.mlp.1", 4 * embedding, projection);
      build.linear("mm.model.mlp.3", projection, projection, scale);
    },
  },
  /** MiniCPM-V: a fixed number of queries looks at each slice. llama.cpp gives them heads of 128. */
  resampler: {
    defaults: { projection: 128, embedding: 16, heads: 2 },
    describe(build, shape) {
      const { embedding, projection, scale, minicpmVersion } = shape;
      // The position table is for a picture of 70 x 70 patches, at any picture size.
      addTower(build, shape, { positions: 70 * 70 });
      build.metadata["clip.minicpmv_version"] = { type: "int32", value: minicpmVersion };
      const queries = 5;
      build.metadata["clip.minicpmv_query_num"] = { type: "uint32", value: queries };
      build.add("resampler.query", [projection, queries], 1);
      // The file must contain it, but llama.cpp computes it instead.
      build.add("resampler.pos_embed_k", [projection, 1], 1);
      build.weight("resampler.kv", embedding, projection);
      for (const part of ["q", "k", "v", "out"]) build.linear(`resampler.attn.${part}`, projection, projection);
      for (const part of ["q", "kv", "post"]) build.norm(`resampler.ln_${part}`, projection);
      build.weight("resampler.proj", projection, projection, scale);
    },
  },
  /**
   * Pixtral: any size, each patch a vector, and one vector after each row except the last. Mistral Small first merges 2
   * x 2 patches.
   */
  pixtral: {
    defaults: {},
    describe(build, shape) {
      const { embedding, projection, scale, patchMerger } = shape;
      addTower(build, shape, {
        positions: 0,
        patchBias: false,
        rms: true,
        bias: false,
        gate: true,
        normBefore: true,
        normBehind: false,
        activation: "silu",
      });
      const linear = patchMerger ? build.weight.bind(build) : build.linear.bind(build);
      if (patchMerger) {
        build.count("spatial_merge_size", 2);
        build.rmsNorm("mm.input_norm", embedding);
        build.weight("mm.patch_merger", 4 * embedding, embedding);
      }
      linear("mm.1", embedding, projection);
      linear("mm.2", projection, projection, scale);
      build.add("v.token_embd.img_break", [projection], scale);
    },
  },
  /** Qwen2-VL: any size, 2 x 2 patches per vector. */
  qwen2vl_merger: {
    defaults: { projection: 64, embedding: 16, heads: 2 },
    describe(build, shape) {
      addTower(build, shape, { positions: 0, frames: 2, patchBias: false, activation: "gelu_quick" });
      addMerger(build, shape);
    },
  },
  /** Qwen2.5-VL: the same, with attention in windows of 112 pixels, except in every second layer here. */
  "qwen2.5vl_merger": {
    defaults: { projection: 64, embedding: 16, heads: 2 },
    describe(build, shape) {
      addTower(build, shape, {
        positions: 0,
        frames: 2,
        patchBias: false,
        rms: true,
        gate: true,
        activation: "silu",
      });
      build.count("n_wa_pattern", 2);
      addMerger(build, shape);
    },
  },
  /**
   * Qwen3-VL: a vector has a part for the model's input, and one to add after each of its first layers. Qwen3.5: only
   * the former.
   */
  qwen3vl_merger: {
    defaults: { embedding: 16, heads: 2, layers: 3 },
    describe(build, shape) {
      const { embedding, projection, scale, deepLayers } = shape;
      addTower(build, shape, { positions: countPatches(shape), frames: 2, fusedQkv: true });
      for (let layer = 0; layer < deepLayers; layer++) {
        const name = (part: string) => `v.deepstack.${layer}.${part}`;
        build.norm(name("norm"), 4 * embedding);
        build.linear(name("fc1"), 4 * embedding, 4 * embedding);
        build.linear(name("fc2"), 4 * embedding, projection, scale);
      }
      addMerger(build, shape);
    },
  },
} satisfies Record<
  string,
  { defaults: Partial<ProjectorShape>; describe(build: ProjectorBuilder, shape: ProjectorShape): void }
>;

function addMerger(build: ProjectorBuilder, { embedding, projection, scale }: ProjectorShape): void {
  build.count("spatial_merge_size", 2);
  build.linear("mm.0", 4 * embedding, 4 * embedding);
  build.linear("mm.2", 4 * embedding, projection, scale);
}
