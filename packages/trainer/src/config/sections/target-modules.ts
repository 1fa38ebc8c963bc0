import { z } from "zod";

/** Names of linear layers in PEFT, and the corresponding ones in llama.cpp. */
const layers: Record<string, string> = {
  q_proj: "attn_q",
  k_proj: "attn_k",
  v_proj: "attn_v",
  qkv_proj: "attn_qkv",
  o_proj: "attn_output",
  in_proj: "shortconv.in_proj",
  gate_proj: "ffn_gate",
  up_proj: "ffn_up",
  gate_up_proj: "ffn_up",
  down_proj: "ffn_down",
  lm_head: "output",
};

/** Layers that an adapter changes: "all-linear", or a list of names from PEFT or llama.cpp. */
export const targetModulesSchema = z.union([
  z.literal("all-linear"),
  z.array(z.string()).transform((names) => names.map((name) => layers[name] ?? name)),
]);

export type TargetModules = z.infer<typeof targetModulesSchema>;

/** Layer names as `loadModel` takes them. */
export function listTargets(modules: TargetModules): string[] | undefined {
  return modules === "all-linear" ? undefined : modules;
}
