import { Events } from "./events.js";
import { Fabric } from "./fabric.js";
import { JOB_TOKEN_BYTES, type Setup, WEIGHT_BYTES } from "./setup.js";

/**
 * The gradients of an update, from the first job to the sum.
 * @param parts tokens of each job: micro-batches of the plan, or contiguous runs of them; for a tree a power of two.
 * @returns when the coordinator has the whole sum.
 */
export function simulateGradients(setup: Setup, fabric: Fabric, parts: readonly number[], start: number): number {
  return setup.design.sum === "tree"
    ? new Tree(setup, fabric, parts).run(start)
    : new Flat(setup, fabric, parts).run(start);
}

/** Workers take jobs in the order of the plan. */
abstract class Jobs {
  protected readonly events = new Events();
  protected readonly bytes: number;
  protected end = 0;

  constructor(
    protected readonly setup: Setup,
    protected readonly fabric: Fabric,
    protected readonly parts: readonly number[],
  ) {
    this.bytes = setup.costs.weights * WEIGHT_BYTES;
  }

  run(start: number): number {
    for (let worker = 0; worker < this.setup.workers; worker++)
      this.events.plan(start, (at) => this.takeNext(worker, at, start));
    this.events.run();
    return this.end;
  }

  /** Index of the next job for this worker. */
  protected abstract choose(worker: number): number | undefined;
  protected abstract finish(part: number, worker: number, at: number, next: (at: number) => void): void;

  private takeNext(worker: number, at: number, start: number): void {
    const part = this.choose(worker);
    if (part === undefined) return;
    const ready = Math.max(at, this.fabric.coordinate(start, this.setup.costs.jobSeconds));
    const begin = this.fabric.message(ready, worker, this.parts[part]! * JOB_TOKEN_BYTES, "in");
    this.events.plan(begin + this.secondsOf(part), (done) =>
      this.finish(part, worker, done, (now) => this.takeNext(worker, now, start)),
    );
  }

  protected secondsOf(part: number): number {
    return this.parts[part]! / (this.setup.costs.trained * this.setup.speed);
  }

  /** Into the coordinator's sum. @returns when it is. */
  protected collect(at: number): number {
    const done = this.fabric.collect(at, this.bytes, this.setup.costs.addSeconds);
    this.end = Math.max(this.end, done);
    return done;
  }
}

/** Each gradient goes whole to the coordinator, which adds it. */
class Flat extends Jobs {
  private next = 0;

  protected choose(): number | undefined {
    return this.next < this.parts.length ? this.next++ : undefined;
  }

  protected finish(part: number, worker: number, at: number, next: (at: number) => void): void {
    const stored = this.fabric.put(at, worker, this.bytes, Fabric.HUB);
    this.events.plan(stored, (now) => {
      const collected = this.collect(now);
      this.end = Math.max(this.end, this.fabric.audit(collected, this.secondsOf(part)));
      // The coordinator gives a worker its next job when it has the result of the one before.
      this.events.plan(collected, next);
    });
  }
}

/**
 * Node 1 is the whole sum, node i adds nodes 2i and 2i + 1, and the parts are the nodes from `parts.length` on. Of two nodes that
 * belong together, the first that is there is stored; who has the second fetches it, adds, and has their parent. That a + b
 * is b + a, and the tree that of the plan, makes the bits those of any other number of workers.
 */
class Tree extends Jobs {
  /** When the first of two was stored, by its node. */
  private readonly stored = new Map<number, number>();
  /** Each leaf server, or each site without them, has a run of the plan. */
  private readonly queues: number[][];

  constructor(setup: Setup, fabric: Fabric, parts: readonly number[]) {
    super(setup, fabric, parts);
    if (!Number.isInteger(Math.log2(parts.length)))
      throw new RangeError(`a tree of ${parts.length} parts is not balanced`);
    const groups = Math.max(1, fabric.leafCount);
    this.queues = Array.from({ length: groups }, () => []);
    for (const part of parts.keys()) this.queues[this.groupOf(part)]!.push(part);
  }

  private groupOf(part: number): number {
    return Math.floor((part * Math.max(1, this.fabric.leafCount)) / this.parts.length);
  }

  protected choose(worker: number): number | undefined {
    return this.queues[Math.max(0, this.fabric.leafOf(worker))]!.shift();
  }

  protected finish(part: number, worker: number, at: number, next: (at: number) => void): void {
    this.end = Math.max(this.end, this.fabric.audit(at, this.secondsOf(part)));
    this.reach(part + this.parts.length, worker, at, next);
  }

  /** A worker has a node's sum. */
  private reach(node: number, worker: number, at: number, next: (at: number) => void): void {
    if (node === 1) {
      this.events.plan(this.fabric.put(at, worker, this.bytes, Fabric.HUB), (now) => {
        this.collect(now);
        next(now);
      });
      return;
    }
    const place = this.placeOf(node >> 1);
    const other = this.stored.get(node ^ 1);
    if (other === undefined) {
      const stored = this.fabric.put(at, worker, this.bytes, place);
      this.stored.set(node, stored);
      this.events.plan(stored, next);
      return;
    }
    this.events.plan(Math.max(at, other), (now) => {
      const got = this.fabric.get(now, worker, this.bytes, place);
      this.events.plan(got + this.setup.costs.addSeconds, (done) => this.reach(node >> 1, worker, done, next));
    });
  }

  /** The leaf that all parts under a node belong to, else the first server. */
  private placeOf(node: number): number {
    if (this.fabric.leafCount === 0) return Fabric.HUB;
    let [first, last] = [node, node];
    while (first < this.parts.length) [first, last] = [2 * first, 2 * last + 1];
    const [from, to] = [first, last].map((leaf) => this.groupOf(leaf - this.parts.length));
    return from === to ? from! : Fabric.HUB;
  }
}
