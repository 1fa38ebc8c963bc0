import type { GenerateResult, PolicySequence } from "@cria/core";
import type { ConversationJournal } from "./answer-journal.js";
import { BranchJournal } from "./branch-journal.js";
import type { BranchPoint } from "./branch-point.js";
import { BranchSequence } from "./branch-sequence.js";
import type { KeptTools } from "./tool-states.js";

export interface GrowingBranchOptions {
  /** Index of the conversation among the samples of its row. */
  sample: number;
  /** Its seed. */
  seed: number;
  /** The point at which it goes on; null: it begins at the prompt. */
  from: BranchPoint | null;
  /** Holds the prompt or, at a branch point, a fork of the point's sequence. */
  sequence: PolicySequence;
  /** Records what the conversation is answered; left out: nothing does. */
  journal: ConversationJournal | undefined;
  /** False: no other conversation will go on from it, so that its turns' ends are not kept. */
  keepsPoints: boolean;
}

/**
 * A conversation of a tree while it runs. It takes over the turns before its branch point: the same tokens and answers,
 * nothing sampled or evaluated again, and the tools in the state of then. It keeps the ends of its own turns as points
 * for others.
 */
export class GrowingBranch {
  /** Ends of its own turns at which it went on, in order. */
  readonly points: BranchPoint[] = [];
  /** The sequence for its loop. */
  readonly sequence: PolicySequence;
  /** The journal for its loop. */
  readonly journal: BranchJournal;
  private readonly sampled: GenerateResult[];

  constructor(private readonly options: GrowingBranchOptions) {
    const { from, sequence, journal } = options;
    const known = from ? from.sampled.slice(0, from.turns) : [];
    this.sampled = [...known];
    this.sequence = new BranchSequence(sequence, known, (turn) => this.sampled.push(turn));
    this.journal = new BranchJournal(from, journal);
  }

  /**
   * Called by the loop whenever a turn was answered and the conversation goes on.
   * @param turns number of the assistant's turns so far.
   * @param tokens number of the conversation's tokens so far.
   * @throws ToolError when a tool's state cannot be saved or restored.
   */
  async reach(turns: number, tokens: number, tools: KeptTools): Promise<void> {
    const { sample, seed, from, sequence, keepsPoints } = this.options;
    const before = from?.turns ?? 0;
    if (from && turns === before) return tools.restore(from.tools);
    if (turns <= before || !keepsPoints) return;
    const seeds = [...(from?.seeds ?? []), ...Array.from({ length: turns - before }, () => seed)];
    const { sampled } = this;
    const { answers } = this.journal;
    const saved = await tools.save();
    this.points.push({ sample, turns, tokens, seeds, sampled, answers, tools: saved, sequence: sequence.fork() });
  }

  /** Frees the points. */
  dispose(): void {
    for (const { sequence } of this.points) sequence.dispose();
    this.points.length = 0;
  }
}
