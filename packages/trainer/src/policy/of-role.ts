import type { Trajectory } from "@cria/core";
import { listSampledTurns, UNNAMED_ROLE } from "@cria/core/internal";
import type { Policy } from "./policy.js";

/** A role with an adapter of its own; null: one policy plays all roles. */
export type Role = string | null;

/** Lists the policies that are trained: each role's, or the policy itself. */
export function listPolicies(policy: Policy): [role: Role, policy: Policy][] {
  return policy.roles ? [...policy.roles] : [[null, policy]];
}

/** Name of a role's own file, for example adapter_buyer.gguf for adapter.gguf; without a role: the name itself. */
export function nameForRole(file: string, role: Role): string {
  return role === null ? file : file.replace(/(\.[^./\\]*)?$/, (extension) => `_${role}${extension}`);
}

/** The trajectory with mask 1 only at the tokens that a role's adapter sampled; null: the trajectory itself. */
export function ofRole<Given extends Pick<Trajectory, "responseMask" | "segments" | "timeline">>(
  trajectory: Given,
  role: Role,
): Given {
  if (role === null) return trajectory;
  const { responseMask: all } = trajectory;
  const responseMask = new Uint8Array(all.length);
  for (const { start, end, role: played = UNNAMED_ROLE } of listSampledTurns(trajectory))
    if (played === role) for (let t = start; t < end; t++) responseMask[t] = all[t]!;
  return { ...trajectory, responseMask };
}
