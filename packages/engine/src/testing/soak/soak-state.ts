import type { LlamaModel } from "../../llama-model.js";
import type { SeededRandom } from "./seeded-random.js";
import type { Turn } from "./turn.js";

/** How often what happened. */
export interface SoakCounts {
  conversations: number;
  forks: number;
  /** Conversations sent again whole, or from an earlier place. */
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

/** Most turns that one check sees, so that memory does not depend on how fast the machine is. */
const MOST_TURNS = 400;

/** What the actors of one run share. */
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

  /** Runs `work`, which may change weights; what is computed meanwhile belongs to no version. */
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

  /** Keeps a turn to be checked: of all since the last check as many as fit, each as likely (Vitter's algorithm R). */
  noteTurn(turn: Turn): void {
    this.turnsSeen++;
    if (this.turns.length < MOST_TURNS) {
      this.turns.push(turn);
      return;
    }
    const place = this.picks.between(0, this.turnsSeen - 1);
    if (place < MOST_TURNS) this.turns[place] = turn;
  }

  /** Gives the kept turns, and forgets them. */
  takeTurns(): Turn[] {
    const { turns } = this;
    this.turns = [];
    this.turnsSeen = 0;
    return turns;
  }

  /** Notes a failure; many of them end the run. */
  fail(what: string): void {
    this.failures.push(what);
    if (this.failures.length >= 20) this.stopping = true;
  }

  /** Runs an actor again and again until the run ends; an error of it is a failure of the run. */
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
