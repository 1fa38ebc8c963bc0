import { hashSeed, makeUniform, type TurnRecord } from "@cria/core";
import type { BeginningTurn } from "@cria/rollout";
import type { DistillationOptions } from "../config/options/distillation.js";

/** The share of turns, and the steps, in which a teacher samples in place of the policy (Guided-OPD, arXiv:2606.15912). */
export type Guidance = Pick<DistillationOptions, "guidedShare" | "guidedSteps">;

/** Probability that the teacher samples a turn of a step: it falls linearly, to 0. @param step from 1. */
export function shareOfTeacher(step: number, { guidedShare, guidedSteps }: Guidance): number {
  return guidedShare * Math.max(0, 1 - (step - 1) / guidedSteps);
}

/** True if the teacher samples a turn: drawn by the conversation's seed and the turn's number. */
export function isGuided({ seed, number }: Pick<BeginningTurn, "seed" | "number">, share: number): boolean {
  return makeUniform(hashSeed(seed, "guided", number))() < share;
}

/** @param conversations turns of each of the step. */
export function measureGuidance(
  step: number,
  guidance: Guidance | null,
  conversations: readonly (readonly Pick<TurnRecord, "role" | "sampledBy">[])[],
): Record<string, number> {
  if (!guidance || guidance.guidedShare === 0) return {};
  const said = conversations.flat().filter(({ role }) => role === "assistant");
  const guided = said.filter(({ sampledBy }) => sampledBy === "teacher").length;
  return {
    "distillation/guided/share": shareOfTeacher(step, guidance),
    "distillation/guided/turns": guided / Math.max(1, said.length),
    "distillation/guided/left_out": conversations.filter(isTeachersAlone).length,
  };
}

/** True if the teacher sampled every turn of a conversation, whose reward then says nothing about the policy. */
export function isTeachersAlone(turns: readonly Pick<TurnRecord, "role" | "sampledBy">[]): boolean {
  const said = turns.filter(({ role }) => role === "assistant");
  return said.length > 0 && said.every(({ sampledBy }) => sampledBy === "teacher");
}
