import { z } from "zod";

/** The names of linear layers in transformers, which PEFT takes, and in llama.cpp. One name may be that of several. */
const layers: Record<string, string | readonly string[]> = {
  q_proj: "attn_q",
  k_proj: "attn_k",
  v_proj: "attn_v",
  qkv_proj: "attn_qkv",
  o_proj: "attn_output",
  // Those of experts, too.
  gate_proj: ["ffn_gate", "ffn_gate_exps"],
  up_proj: ["ffn_up", "ffn_up_exps"],
  gate_up_proj: "ffn_up",
  down_proj: ["ffn_down", "ffn_down_exps"],
  gate: "ffn_gate_inp",
  router: "ffn_gate_inp",
  // LFM2's attention and convolutions end with an out_proj each, as the layers with a state of Qwen3.5 and Granite's
  // hybrids do.
  in_proj: ["shortconv.in_proj", "ssm_in"],
  out_proj: ["attn_output", "shortconv.out_proj", "ssm_out"],
  in_proj_qkv: "attn_qkv",
  in_proj_z: "attn_gate",
  in_proj_a: "ssm_alpha",
  in_proj_b: "ssm_beta",
  input_linear: ["ffn_gate", "ffn_up"],
  output_linear: "ffn_down",
  w1: "ffn_gate",
  w3: "ffn_up",
  w2: "ffn_down",
  lm_head: "output",
};

/** llama.cpp's names of all layers that an adapter can change. */
export const linearLayers: ReadonlySet<string> = new Set(Object.values(layers).flat());

/** Those that "all-linear" leaves out, as the engine does: the head, experts and their router. */
export const namedLayers: ReadonlySet<string> = new Set([
  "output",
  "ffn_gate_inp",
  "ffn_gate_exps",
  "ffn_up_exps",
  "ffn_down_exps",
]);

/** Layers that an adapter changes: "all-linear", or a list of names from PEFT or llama.cpp. */
export const targetModulesSchema = z.union([
  z.literal("all-linear"),
  z.array(z.string()).transform((names) => [...new Set(names.flatMap((name) => layers[name] ?? name))]),
]);

export type TargetModules = z.infer<typeof targetModulesSchema>;

/**
 * Lists the targets that a model does not have. Of one name that stands for several layers, one is enough.
 * @param present names of the model's layers in llama.cpp.
 */
export function listMissingTargets(
  modules: Exclude<TargetModules, "all-linear">,
  present: ReadonlySet<string>,
): string[] {
  const pairs = Object.values(layers).filter((names) => typeof names !== "string");
  const hasOther = (layer: string) =>
    pairs.some((names) => names.includes(layer) && names.some((name) => modules.includes(name) && present.has(name)));
  return modules.filter((layer) => !present.has(layer) && !hasOther(layer));
}

/** Layer names as `loadModel` takes them. */
export function listTargets(modules: TargetModules): string[] | undefined {
  return modules === "all-linear" ? undefined : modules;
}
