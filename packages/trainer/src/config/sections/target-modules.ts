import { z } from "zod";

/** The names of linear layers in transformers, which PEFT takes, and in llama.cpp. One name may be that of two layers. */
const layers: Record<string, string | readonly string[]> = {
  q_proj: "attn_q",
  k_proj: "attn_k",
  v_proj: "attn_v",
  qkv_proj: "attn_qkv",
  o_proj: "attn_output",
  gate_proj: "ffn_gate",
  up_proj: "ffn_up",
  gate_up_proj: "ffn_up",
  down_proj: "ffn_down",
  // Of LFM2, whose attention and convolutions end with an out_proj each.
  in_proj: "shortconv.in_proj",
  out_proj: ["attn_output", "shortconv.out_proj"],
  w1: "ffn_gate",
  w3: "ffn_up",
  w2: "ffn_down",
  lm_head: "output",
};

/** Layers that an adapter changes: "all-linear", or a list of names from PEFT or llama.cpp. */
export const targetModulesSchema = z.union([
  z.literal("all-linear"),
  z.array(z.string()).transform((names) => [...new Set(names.flatMap((name) => layers[name] ?? name))]),
]);

export type TargetModules = z.infer<typeof targetModulesSchema>;

/** Layer names as `loadModel` takes them. */
export function listTargets(modules: TargetModules): string[] | undefined {
  return modules === "all-linear" ? undefined : modules;
}
