import { Pipe, pass } from "./pipe.js";
import { auditShareOf, BLOB_ROUND_TRIPS, JOB_ROUND_TRIPS, PIECE_BYTES, type Setup } from "./setup.js";

/** A server that keeps blobs. */
interface Server {
  in: Pipe;
  out: Pipe;
  write: Pipe;
  read: Pipe;
}

/** The wires, servers and the coordinator's CPU of one simulated step. Calls must come in the order of their times. */
export class Fabric {
  /** Nobody's leaf: the first server. */
  static readonly HUB = -1;
  readonly leafCount: number;
  private readonly hub: Server;
  private readonly leaves: Server[];
  private readonly lines: { in: Pipe; out: Pipe }[];
  private readonly workers: { in: Pipe; out: Pipe }[];
  /** In seconds of work: its CPU, and its engine. */
  private readonly coordinator = new Pipe(1);
  private readonly auditor = new Pipe(1);
  private undrawn = 0;
  private readonly auditShare: number;

  constructor(private readonly setup: Setup) {
    const { network, workers, design } = setup;
    this.auditShare = auditShareOf(setup);
    this.hub = this.makeServer();
    const perLeaf = design.workersPerLeaf;
    this.leafCount =
      perLeaf === null ? 0 : network.sites > 1 ? Math.min(network.sites, workers) : Math.ceil(workers / perLeaf);
    this.leaves = Array.from({ length: this.leafCount }, () => this.makeServer());
    this.lines = Array.from({ length: network.sites }, (_, site) => {
      const rate = site === 0 ? Number.POSITIVE_INFINITY : network.lineRate;
      return { in: new Pipe(rate), out: new Pipe(rate) };
    });
    this.workers = Array.from({ length: workers }, () => ({
      in: new Pipe(network.workerRate),
      out: new Pipe(network.workerRate),
    }));
  }

  private makeServer(): Server {
    const { network, costs } = this.setup;
    return {
      in: new Pipe(network.serverRate),
      out: new Pipe(network.serverRate),
      write: new Pipe(costs.serverPut),
      read: new Pipe(costs.serverGet),
    };
  }

  /** Sites and leaves have contiguous workers. */
  siteOf(worker: number): number {
    return Math.floor((worker * this.setup.network.sites) / this.setup.workers);
  }

  /** `Fabric.HUB` without leaves. */
  leafOf(worker: number): number {
    if (this.leafCount === 0) return Fabric.HUB;
    return Math.floor((worker * this.leafCount) / this.setup.workers);
  }

  /** Seconds there and back between a worker and a server. */
  roundTrip(worker: number, place: number): number {
    const { network } = this.setup;
    return place === Fabric.HUB && this.siteOf(worker) > 0 ? network.lineRoundTrip : network.roundTrip;
  }

  /** @returns when a job is in hand and told about, beside its work: `bytes` of job and result. */
  message(at: number, worker: number, bytes: number, way: "in" | "out"): number {
    const pipes = [this.workers[worker]![way], ...this.between(worker, way), way === "in" ? this.hub.out : this.hub.in];
    return pass(at, bytes, pipes) + (JOB_ROUND_TRIPS / 2) * this.roundTrip(worker, Fabric.HUB);
  }

  /** A worker stores a blob on the first server or on its own leaf. @returns when it is there. */
  put(at: number, worker: number, bytes: number, place: number): number {
    const server = this.serverAt(place);
    const far = place === Fabric.HUB ? this.between(worker, "out") : [];
    const end = pass(at, bytes, [this.workers[worker]!.out, ...far, server.in, server.write]);
    return Math.max(end, at + bytes / this.setup.costs.clientPut) + this.waitForPieces(bytes, worker, place);
  }

  /** A worker fetches a blob. @returns when it has it. */
  get(at: number, worker: number, bytes: number, place: number): number {
    const server = this.serverAt(place);
    const far = place === Fabric.HUB ? this.between(worker, "in") : [];
    const end = pass(at, bytes, [server.read, server.out, ...far, this.workers[worker]!.in]);
    const least = at + bytes / this.setup.costs.clientGet;
    return Math.max(end, least) + BLOB_ROUND_TRIPS * this.roundTrip(worker, place);
  }

  /** A leaf copies a blob of the first server. @returns when it has it. */
  copyToLeaf(at: number, leaf: number, bytes: number): number {
    const worker = Math.ceil((leaf * this.setup.workers) / this.leafCount);
    const server = this.leaves[leaf]!;
    const pipes = [this.hub.read, this.hub.out, ...this.between(worker, "in"), server.in, server.write];
    return pass(at, bytes, pipes) + this.roundTrip(worker, Fabric.HUB);
  }

  /** The coordinator, beside the first server, stores a blob. @returns when it is there. */
  publish(at: number, bytes: number): number {
    const cpu = this.coordinate(at, bytes / this.setup.costs.clientPut);
    return Math.max(cpu, this.hub.write.take(at, bytes));
  }

  /** The coordinator fetches a blob and works on it. @returns when that is done. */
  collect(at: number, bytes: number, seconds: number): number {
    const read = this.hub.read.take(at, bytes);
    return Math.max(read, this.coordinate(at, bytes / this.setup.costs.clientGet + seconds));
  }

  /** Seconds of the coordinator's CPU. @returns when they are over. */
  coordinate(at: number, seconds: number): number {
    return this.coordinator.take(at, seconds);
  }

  /** Perhaps computes a job again, which would take so many seconds. @returns when its result counts. */
  audit(at: number, seconds: number): number {
    // Evenly, for draws by chance would blur what is compared.
    this.undrawn += this.auditShare;
    if (this.undrawn < 1 - 1e-9) return at;
    this.undrawn -= 1;
    return this.auditor.take(at, seconds);
  }

  /** One round trip for so many pieces, and those before and behind them. */
  private waitForPieces(bytes: number, worker: number, place: number): number {
    const pieces = Math.ceil(bytes / PIECE_BYTES) / this.setup.design.piecesInFlight;
    return (pieces + BLOB_ROUND_TRIPS) * this.roundTrip(worker, place);
  }

  private serverAt(place: number): Server {
    return place === Fabric.HUB ? this.hub : this.leaves[place]!;
  }

  private between(worker: number, way: "in" | "out"): Pipe[] {
    const site = this.siteOf(worker);
    return site === 0 ? [] : [this.lines[site]![way]];
  }
}
