import type { LlamaModel } from "../../llama-model.js";
import type { SeededRandom } from "./seeded-random.js";
import type { Turn } from "./turn.js";

/** Number of events by kind. */
export interface SoakCounts {
  conversations: number;
  forks: number;
  /** Conversations that were sent again, whole or from an earlier point. */
  restarts: number;
  generations: number;
  prefills: number;
  aborted: number;
  disposedInFlight: number;
  sampledTokens: number;
  scoreCalls: number;
  trainSteps: number;
  trainRefused: number;
  flushes: number;
  statesRestored: number;
  adaptersSaved: number;
  modelsLoaded: number;
  criticSteps: number;
  refused: number;
}

/** Most turns per check, so that memory does not depend on the machine's speed. */
const MOST_TURNS = 400;

/** State shared by the actors of one run. */
export class SoakState {
  readonly counts: SoakCounts = {
    conversations: 0,
    forks: 0,
    restarts: 0,
    generations: 0,
    prefills: 0,
    aborted: 0,
    disposedInFlight: 0,
    sampledTokens: 0,
    scoreCalls: 0,
    trainSteps: 0,
    trainRefused: 0,
    flushes: 0,
    statesRestored: 0,
    adaptersSaved: 0,
    modelsLoaded: 0,
    criticSteps: 0,
    refused: 0,
  };
  readonly failures: string[] = [];
  private turns: Turn[] = [];
  private turnsSeen = 0;
  stopping = false;
  private version = 0;
  private changing = false;
  private readonly picks: SeededRandom;

  constructor(
    readonly model: LlamaModel,
    readonly path: string,
    readonly folder: string,
    readonly random: SeededRandom,
  ) {
    this.picks = random.derive(-1e6);
  }

  /** Version of the weights; null while they may change. */
  get weights(): number | null {
    return this.changing ? null : this.version;
  }

  /** Runs `work`, which may change weights; results computed meanwhile belong to no version. */
  async changeWeights(work: () => Promise<void>): Promise<void> {
    this.changing = true;
    try {
      await work();
    } finally {
      this.version++;
      this.changing = false;
      this.takeTurns();
    }
  }

  /**
   * Keeps a turn to be checked: of all turns since the last check as many as fit, all equally likely (Vitter's
   * algorithm R).
   */
  noteTurn(turn: Turn): void {
    this.turnsSeen++;
    if (this.turns.length < MOST_TURNS) {
      this.turns.push(turn);
      return;
    }
    const place = this.picks.between(0, this.turnsSeen - 1);
    if (place < MOST_TURNS) this.turns[place] = turn;
  }

  /** Returns the kept turns and forgets them. */
  takeTurns(): Turn[] {
    const { turns } = this;
    this.turns = [];
    this.turnsSeen = 0;
    return turns;
  }

  /** Records a failure; too many of them end the run. */
  fail(what: string): void {
    this.failures.push(what);
    if (this.failures.length >= 20) this.stopping = true;
  }

  /** Runs an actor repeatedly until the run ends; its errors are failures of the run. */
  async repeat(name: string, actor: (round: number) => Promise<void>): Promise<void> {
    for (let round = 0; !this.stopping; round++) {
      try {
        await actor(round);
      } catch (error) {
        this.fail(`${name}: ${(error as Error).stack}`);
      }
    }
  }
}
