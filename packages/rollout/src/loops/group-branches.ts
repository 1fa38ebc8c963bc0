import type { PolicySequence } from "@cria/core";
import type { ConversationJournal } from "./answer-journal.js";
import type { BranchPoint } from "./branch-point.js";
import { GrowingBranch } from "./growing-branch.js";

/** The conversations of a row that branch: where each goes on, and the points that it leaves for others. */
export class GroupBranches {
  private readonly origins = new Map<number, { from: BranchPoint | null; keepsPoints: boolean }>();
  private readonly branches = new Map<number, GrowingBranch>();

  /**
   * Says where a conversation begins, before it does.
   * @param from where it goes on; null: it begins at the prompt.
   * @param keepsPoints true: others may go on from its turns.
   */
  plant(sample: number, from: BranchPoint | null, keepsPoints: boolean): void {
    this.origins.set(sample, { from, keepsPoints });
  }

  /** The point at which a conversation goes on; null: it begins at the prompt. */
  originOf(sample: number): BranchPoint | null {
    return this.origins.get(sample)!.from;
  }

  /** Opens a planted conversation, in place of an earlier try at it. @param given as in `GrowingBranchOptions`. */
  open(
    sample: number,
    given: { seed: number; sequence: PolicySequence; journal: ConversationJournal | undefined },
  ): GrowingBranch {
    this.branches.get(sample)?.dispose();
    const branch = new GrowingBranch({ ...given, ...this.origins.get(sample)!, sample });
    this.branches.set(sample, branch);
    return branch;
  }

  /** The points that a conversation left, in the order of its turns. */
  pointsOf(sample: number): readonly BranchPoint[] {
    return this.branches.get(sample)?.points ?? [];
  }

  /** Frees all points. */
  dispose(): void {
    for (const branch of this.branches.values()) branch.dispose();
  }
}
