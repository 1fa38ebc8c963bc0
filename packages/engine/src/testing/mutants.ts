import type { GgufFile, GgufTensor, GgufValue } from "../native-types.js";

type Draw = (below: number) => number;

/** Draws integers below a bound; the same for the same seed (mulberry32). */
function makeDraw(seed: number): Draw {
  let state = seed >>> 0;
  const draw = (below: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
  // Neighbouring seeds differ too little in their first number.
  draw(1);
  return draw;
}

const pick = <T>(list: readonly T[], draw: Draw): T => list[draw(list.length)]!;

const integers = [
  0,
  1,
  2,
  3,
  7,
  8,
  15,
  31,
  33,
  64,
  127,
  255,
  256,
  1000,
  4097,
  65535,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
];
const floats = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1e-45, 1e38];

/** Ways to damage a file's bytes; `header`: the range with most of the damage. */
const byteMutations: readonly ((bytes: Buffer, draw: Draw, header: number) => Buffer)[] = [
  function flipBits(bytes, draw, header) {
    for (let n = 1 + draw(4); n > 0; n--) bytes[draw(header)]! ^= 1 << draw(8);
    return bytes;
  },
  function setNumber(bytes, draw, header) {
    const value = pick(integers, draw);
    const at = draw(Math.max(1, header - 4));
    if (draw(2)) bytes.writeUInt32LE(value, at);
    else bytes.writeUInt16BE(value % 65536, at);
    return bytes;
  },
  function copyPart(bytes, draw, header) {
    const from = draw(header);
    bytes.copy(bytes, draw(header), from, from + 1 + draw(48));
    return bytes;
  },
  function repeatPart(bytes, draw, header) {
    const at = draw(header);
    return Buffer.concat([bytes.subarray(0, at + draw(64)), bytes.subarray(at)]);
  },
  function cutOff(bytes, draw, header) {
    return bytes.subarray(0, draw(2) ? draw(header) : draw(bytes.length));
  },
];

/** A file damaged in one way; the same for the same seed. `header`: number of leading bytes with most of the damage. */
export function mutateBytes(file: Uint8Array, seed: number, header = file.length): Buffer {
  const draw = makeDraw(seed);
  return pick(byteMutations, draw)(Buffer.from(file), draw, Math.min(header, file.length));
}

/** Projector families of llama.cpp, and keys that some of them read. */
const projectorTypes = (
  "mlp ldp ldpv2 resampler adapter qwen2vl_merger qwen2.5vl_merger qwen3vl_merger step3vl gemma3 gemma3nv gemma4v phi4 idefics3 " +
  "pixtral internvl llama4 qwen2.5o lfm2 kimivl paddleocr lightonocr cogvlm janus_pro dots_ocr deepseekocr glm4v youtuvl yasa2 " +
  "kimik25 nemotron_v2_vl exaone4_5 hunyuanvl minicpmv4_6 mimovl granite4_vision muse-glimmer nothing"
).split(" ");
const otherKeys = [
  "clip.vision.projector.scale_factor",
  "clip.vision.n_wa_pattern",
  "clip.vision.window_size",
  "clip.vision.spatial_merge_size",
  "clip.vision.preproc_image_size",
  "clip.vision.preproc_min_tiles",
  "clip.vision.preproc_max_tiles",
  "clip.vision.image_min_pixels",
  "clip.vision.image_max_pixels",
  "clip.vision.attention.head_count_kv",
  "clip.vision.attention.key_length",
  "clip.minicpmv_query_num",
];
const otherLists = ["clip.vision.feature_layer", "clip.vision.image_grid_pinpoints", "clip.vision.wa_layer_indexes"];
const otherTensors = ["v.class_embd", "v.pre_ln.weight", "v.post_ln.weight", "mm.1.weight", "mm.model.fc.weight"];

const list = (value: number[]): GgufValue => ({ type: "array", of: "int32", value });

const reshape = (tensor: GgufTensor, shape: number[]): void => {
  const count = shape.reduce((product, n) => product * n, 1);
  tensor.data = Float32Array.from({ length: count }, (_, i) => tensor.data[i % tensor.data.length]!);
  tensor.shape = shape;
};

/** Ways to change a file's content so that it stays a GGUF. */
const contentMutations: readonly ((file: GgufFile, draw: Draw) => void)[] = [
  function setCount({ metadata }, draw) {
    const keys = Object.keys(metadata).filter((key) => metadata[key]!.type === "uint32");
    metadata[pick(keys, draw)] = { type: "uint32", value: pick(integers, draw) };
  },
  function shiftCount({ metadata }, draw) {
    const keys = Object.keys(metadata).filter((key) => metadata[key]!.type === "uint32");
    const key = pick(keys, draw);
    const { value } = metadata[key] as { value: number };
    metadata[key] = { type: "uint32", value: pick([value * 2, value + 1, value >> 1, Math.max(0, value - 1)], draw) };
  },
  function changeType({ metadata }, draw) {
    const values: GgufValue[] = [
      { type: "string", value: "x" },
      { type: "float32", value: -1 },
      { type: "bool", value: false },
      { type: "int32", value: -5 },
      list([]),
      { type: "array", of: "float32", value: [0] },
    ];
    metadata[pick(Object.keys(metadata), draw)] = pick(values, draw);
  },
  function removeKey({ metadata }, draw) {
    delete metadata[pick(Object.keys(metadata), draw)];
  },
  function addKey({ metadata }, draw) {
    if (draw(2)) metadata[pick(otherKeys, draw)] = { type: "uint32", value: pick(integers, draw) };
    else {
      const values = Array.from({ length: draw(5) }, () => pick([0, 1, -1, 2, 3, 16, 32, 64, 1000, 2 ** 31 - 1], draw));
      metadata[pick(otherLists, draw)] = list(values);
    }
  },
  function changeFamily({ metadata }, draw) {
    metadata["clip.projector_type"] = { type: "string", value: pick(projectorTypes, draw) };
  },
  function changeShape({ tensors }, draw) {
    const tensor = pick(tensors, draw);
    const shape = [...tensor.shape];
    const axis = draw(shape.length);
    const n = shape[axis]!;
    shape[axis] = pick([1, n + 1, n * 2, Math.max(1, n - 1), Math.max(1, n >> 1)], draw);
    reshape(tensor, shape);
  },
  function turnShape({ tensors }, draw) {
    const tensor = pick(tensors, draw);
    reshape(tensor, draw(2) ? tensor.shape.toReversed() : [tensor.data.length]);
  },
  function removeTensor({ tensors }, draw) {
    tensors.splice(draw(tensors.length), 1);
  },
  function swapNames({ tensors }, draw) {
    const [a, b] = [pick(tensors, draw), pick(tensors, draw)];
    [a.name, b.name] = [b.name, a.name];
  },
  function addTensor({ tensors }, draw) {
    const name = pick(otherTensors, draw);
    if (tensors.every((tensor) => tensor.name !== name)) tensors.push({ ...pick(tensors, draw), name });
  },
  function changeWeights({ tensors }, draw) {
    const { data } = pick(tensors, draw);
    for (let n = 1 + draw(20); n > 0; n--) data[draw(data.length)] = pick(floats, draw);
  },
  function quantize({ tensors }, draw) {
    const fitting = tensors.filter(({ shape }) => shape[0]! % 32 === 0);
    if (fitting.length > 0) pick(fitting, draw).type = pick(["f16", "bf16", "q8_0", "q4_0"] as const, draw);
  },
];

/** A projector's content with one or two changes; the same for the same seed. */
export function mutateProjector(file: GgufFile, seed: number): GgufFile {
  const draw = makeDraw(seed);
  const mutant = structuredClone(file);
  for (let n = 1 + draw(2); n > 0; n--) pick(contentMutations, draw)(mutant, draw);
  return mutant;
}
