import { isUsableNumber } from "@cria/episodes/internal";
import { isRole } from "./check-request.js";

/** The reward of each role that the model played in an episode (`ChatRequest.role`). */
export type RoleRewards = Readonly<Record<string, number>>;

/** The `expected` part of an error. */
export const theRoleRewards = "a finite number for each role, such as { x: 1, o: -1 }";

export function isRoleRewards(value: unknown): value is RoleRewards {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(([role, reward]) => isRole(role) && isUsableNumber(reward));
}
