import { hashSeed, makeUniform, type TrajectoryBranch } from "@cria/core";
import type { BranchPoint } from "./branch-point.js";
import type { GroupBranches } from "./group-branches.js";
import { countLeaves, type TreeOptions } from "./tree-options.js";

/**
 * The trees of one row (Tree-GRPO, Ji et al. 2025, arXiv:2509.21240). Each begins with one conversation. In each round
 * `expansions` turn ends of the tree are drawn, and another conversation goes on from each of them to its end. The
 * samples of a tree follow each other: the first conversation, then those of each round.
 */
export class GroupTrees {
  private readonly leaves: number;

  /**
   * @param n number of samples of the row, a multiple of a tree's.
   * @param place parts of the seed of the draws: the run's seed, the step and the row.
   */
  constructor(
    private readonly branches: GroupBranches,
    private readonly options: TreeOptions,
    private readonly n: number,
    private readonly place: readonly (string | number)[],
  ) {
    this.leaves = countLeaves(options);
  }

  /** Number of trees. */
  get count(): number {
    return this.n / this.leaves;
  }

  /** Begins a tree. @returns the sample of its first conversation. */
  plant(tree: number): number {
    const sample = tree * this.leaves;
    this.branches.plant(sample, null, true);
    return sample;
  }

  /**
   * Draws where the conversations of a round go on, once all earlier ones of the tree have ended. Each turn end is
   * drawn once before any is drawn again. Without a turn end the conversations begin at the prompt.
   * @param round from 1.
   * @param isWhole false for conversations that failed: none goes on from them.
   * @returns the samples to begin.
   */
  grow(tree: number, round: number, isWhole: (sample: number) => boolean): number[] {
    const { expansions, rounds } = this.options;
    const first = tree * this.leaves;
    const next = first + 1 + (round - 1) * expansions;
    const samples = Array.from({ length: next - first }, (_, i) => first + i);
    const points = samples.filter(isWhole).flatMap((sample) => this.branches.pointsOf(sample));
    const uniform = makeUniform(hashSeed(...this.place, "tree", tree, round));
    let left: BranchPoint[] = [];
    return Array.from({ length: expansions }, (_, i) => {
      if (left.length === 0) left = [...points];
      const [from = null] = left.splice(Math.floor(uniform() * left.length), 1);
      this.branches.plant(next + i, from, round < rounds);
      return next + i;
    });
  }

  describe(sample: number): TrajectoryBranch {
    const from = this.branches.originOf(sample);
    const tree = Math.floor(sample / this.leaves);
    return { tree, parent: from?.sample ?? null, turns: from?.turns ?? 0, tokens: from?.tokens ?? 0 };
  }
}
