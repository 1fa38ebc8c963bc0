import { Events } from "./events.js";
import type { Fabric } from "./fabric.js";
import { type Costs, JOB_TOKEN_BYTES, RESULT_TOKEN_BYTES, type Setup } from "./setup.js";
import type { Conversation, Turn } from "./workload.js";

const AUDITS_AT_ONCE = 8;

/** A conversation in a worker's hands. `left`: work until the end of its turn, in tokens as if sampled. */
interface Running {
  conversation: Conversation;
  turn: number;
  left: number;
}

/**
 * The rollouts of a step. Workers take conversations as they have slots, and share their speed among those that are not waiting
 * for a tool.
 * @param starts when each worker has the policy.
 * @returns when the last conversation's result is with the coordinator.
 */
export function simulateRollouts(
  setup: Setup,
  fabric: Fabric,
  conversations: readonly Conversation[],
  starts: readonly number[],
): number {
  const events = new Events();
  let next = 0;
  let end = 0;
  const hands = starts.map(() => new Hand(setup.costs, setup.speed, events));
  const takeNext = (worker: number) => (at: number) => {
    const conversation = conversations[next++];
    if (!conversation) return;
    // The coordinator queues jobs one after another, before anybody is waiting where it can.
    const ready = Math.max(at, fabric.coordinate(0, setup.costs.jobSeconds));
    const told = fabric.message(ready, worker, conversation.turns[0]!.evaluated * JOB_TOKEN_BYTES, "in");
    events.plan(Math.max(told, starts[worker]!), (now) =>
      hands[worker]!.start(now, conversation, (done) => {
        const told = fabric.message(done, worker, conversation.tokens * RESULT_TOKEN_BYTES, "out");
        end = Math.max(end, fabric.audit(told, estimateAudit(setup, conversation)));
        takeNext(worker)(done);
      }),
    );
  };
  // All slots are waiting for jobs when the step begins, and every worker's first is served before anybody's second.
  for (let slot = 0; slot < setup.slots; slot++) for (const worker of starts.keys()) events.plan(0, takeNext(worker));
  events.run();
  return end;
}

/** The coordinator holds it again beside other audits, with the tools' answers in its record. */
function estimateAudit({ costs, speed }: Setup, conversation: Conversation): number {
  const work = conversation.turns.reduce((sum, turn) => sum + workOf(turn, costs), 0);
  return work / (interpolate(costs.sampled, AUDITS_AT_ONCE) * speed);
}

/** In tokens as if sampled: those that are only evaluated go at the rate of scores, set against that of many conversations. */
const workOf = ({ evaluated, sampled }: Turn, { sampled: rates, scored }: Costs): number =>
  sampled + (evaluated * rates.at(-1)![1]) / scored;

/** One worker's engine: whoever is not waiting gets an equal share of a rate that depends on how many they are. */
class Hand {
  private readonly active = new Map<Running, (at: number) => void>();
  private now = 0;
  private change = 0;

  constructor(
    private readonly costs: Costs,
    private readonly speed: number,
    private readonly events: Events,
  ) {}

  start(at: number, conversation: Conversation, onEnd: (at: number) => void): void {
    this.takeTurn(at, conversation, 0, onEnd);
  }

  private takeTurn(at: number, conversation: Conversation, turn: number, onEnd: (at: number) => void): void {
    const { wait } = conversation.turns[turn]!;
    const left = workOf(conversation.turns[turn]!, this.costs);
    this.advance(at);
    this.active.set({ conversation, turn, left }, (done) => {
      if (turn + 1 === conversation.turns.length) onEnd(done);
      else this.events.plan(done + wait, (next) => this.takeTurn(next, conversation, turn + 1, onEnd));
    });
    this.planNext();
  }

  /** What was done since the last change. */
  private advance(at: number): void {
    const share = this.shareOfEach() * (at - this.now);
    if (share > 0) for (const running of this.active.keys()) running.left -= share;
    this.now = at;
  }

  private planNext(): void {
    const change = ++this.change;
    if (this.active.size === 0) return;
    const first = [...this.active.keys()].reduce((a, b) => (b.left < a.left ? b : a));
    this.events.plan(this.now + Math.max(0, first.left) / this.shareOfEach(), (at) => {
      if (change !== this.change) return;
      this.advance(at);
      const onDone = this.active.get(first)!;
      this.active.delete(first);
      onDone(at);
      this.planNext();
    });
  }

  private shareOfEach(): number {
    const count = this.active.size;
    return count === 0 ? 0 : (interpolate(this.costs.sampled, count) * this.speed) / count;
  }
}

/** Between the measured numbers of conversations; beyond them the rate stays. */
export function interpolate(points: readonly [number, number][], x: number): number {
  const after = points.findIndex(([at]) => at >= x);
  if (after === -1) return points.at(-1)![1];
  if (after === 0) return points[0]![1];
  const [[x0, y0], [x1, y1]] = [points[after - 1]!, points[after]!];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}
