import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Tracer } from "@cria/rollout";
import type { ServedModel } from "../model/served-model.js";
import { Sessions } from "../model/sessions.js";
import type { AnswerContext } from "../protocol/protocol.js";
import { RequestError } from "../request-error.js";
import { type Authenticate, authenticateByKey, type OriginRules } from "./access.js";
import { Gate } from "./gate.js";
import { Metrics } from "./metrics.js";

/** Limits on requests. All numbers are at least 1. */
export interface EndpointLimits {
  /** Bytes of a body; default 2 MB, and 16 MB where the model takes images. */
  bodyBytes: number;
  /** Images of a request; default 100. */
  images: number;
  /** Tokens of an answer; default: the rest of the context. */
  answerTokens: number;
  /** Calls of the model at once; default: as many conversations as the model computes at once. */
  running: number;
  /** Calls that may wait; default 1024. */
  waiting: number;
  /** Bytes of a stream that wait for a slow client; default 1 MB. */
  streamBytes: number;
  /** Milliseconds for which a client of a stream may read nothing; default 30 000. */
  stallMs: number;
  /** Milliseconds between keep-alive comments in a stream; default 15 000. */
  keepAliveMs: number;
  /** Milliseconds of text that a stream sends in one event, after its first pieces; default 50. */
  paceMs: number;
  /** Milliseconds after which a stream begins even if nothing was sampled yet; default 5000. */
  beginMs: number;
  /** Sessions; default 4096. */
  sessions: number;
  /** Tokens of the conversations kept for requests without a session; default 2^21. */
  anonymousTokens: number;
}

export interface EndpointOptions {
  model: ServedModel;
  limits?: Partial<EndpointLimits>;
  /** Base seed of sessions, combined with their ids; default 0. */
  seed?: number;
  /** True if requests may name sessions that were not created before; default true. */
  implicitSessions?: boolean;
  /** Default: admits everyone, as `authenticateByKey(null)`. */
  authenticate?: Authenticate;
  /** Default: any host, no other origin. */
  origins?: OriginRules;
  /**
   * Fetches images that requests name by their addresses. Default: such images are refused, since clients could make
   * the server call any address.
   */
  fetchImage?: typeof fetch;
  /** Gets a span of each request to the model, as `openTracer()` of `@cria/rollout`; default: no spans. */
  tracer?: Tracer;
}

/** State that all routes share. */
export class Endpoint {
  readonly model: ServedModel;
  readonly limits: EndpointLimits;
  readonly gate: Gate;
  readonly sessions: Sessions;
  readonly metrics: Metrics;
  readonly authenticate: Authenticate;
  readonly origins: OriginRules;
  readonly fetchImage: typeof fetch | undefined;
  readonly tracer: Tracer | undefined;
  private readonly ending = new AbortController();
  private readonly loopDelay = monitorEventLoopDelay({ resolution: 10 });
  private isDraining = false;
  private readonly startedAt = Math.floor(Date.now() / 1000);

  constructor(options: EndpointOptions) {
    const { model, seed = 0, implicitSessions = true, limits = {} } = options;
    this.model = model;
    this.limits = {
      bodyBytes: model.images ? 16_000_000 : 2_000_000,
      images: 100,
      answerTokens: Number.MAX_SAFE_INTEGER,
      running: model.maxSequences,
      waiting: 1024,
      streamBytes: 1_000_000,
      stallMs: 30_000,
      keepAliveMs: 15_000,
      paceMs: 50,
      beginMs: 5000,
      sessions: 4096,
      anonymousTokens: 2 ** 21,
      ...Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)),
    };
    this.gate = new Gate(this.limits);
    this.sessions = new Sessions({
      model,
      seed,
      implicit: implicitSessions,
      most: this.limits.sessions,
      mostAnonymousTokens: this.limits.anonymousTokens,
    });
    this.metrics = new Metrics({
      running: () => this.gate.running,
      waiting: () => this.gate.waiting,
      sessions: () => this.sessions.size,
      policyVersion: () => model.policyVersion,
      inEngine: () => model.countInUse(),
      images: () => model.images?.stats() ?? null,
      eventLoopDelay: () => (this.loopDelay.max === 0 ? Number.NaN : this.loopDelay.percentile(99) / 1e9),
    });
    this.authenticate = options.authenticate ?? authenticateByKey(null);
    // Every running call adds a listener.
    setMaxListeners(0, this.ending.signal);
    this.origins = options.origins ?? { hosts: null, cors: [] };
    this.fetchImage = options.fetchImage;
    this.tracer = options.tracer;
  }

  /** Measures the event loop's delay from now on, until the endpoint is disposed of. */
  measureEventLoop(): void {
    this.loopDelay.enable();
  }

  /** Aborts when the endpoint ends. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get draining(): boolean {
    return this.isDraining;
  }

  get created(): number {
    return this.startedAt;
  }

  makeContext(): AnswerContext {
    const { model } = this;
    return {
      id: randomUUID().replaceAll("-", ""),
      created: Math.floor(Date.now() / 1000),
      model: model.name,
      fingerprint: model.fingerprint,
      spell: (ids) => model.spell(ids),
    };
  }

  /** @throws RequestError 503 once the server is ending. */
  checkOpen(): void {
    if (this.isDraining) throw makeEnding();
  }

  /**
   * Refuses new requests, and waits up to `deadlineMs` for the running ones, which are then aborted.
   * @returns the number of aborted ones.
   */
  async drain(deadlineMs: number): Promise<number> {
    this.isDraining = true;
    let timer: NodeJS.Timeout | undefined;
    let aborted = 0;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        aborted = this.gate.running + this.gate.waiting;
        this.ending.abort(makeEnding());
        resolve();
      }, deadlineMs);
    });
    const done = (async () => {
      // A waiting request enters when another leaves.
      while (this.gate.running + this.gate.waiting > 0) {
        await this.gate.drain();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    await Promise.race([late, done]);
    clearTimeout(timer);
    await this.gate.drain();
    return aborted;
  }

  /** Ends all sessions and all running requests. */
  dispose(): void {
    this.isDraining = true;
    this.loopDelay.disable();
    if (!this.ending.signal.aborted) this.ending.abort(makeEnding());
    this.sessions.dispose();
  }
}

function makeEnding(): RequestError {
  return new RequestError(503, "is ending", {
    code: "serve/ending",
    subject: "server",
    remedy: "try again after its restart",
    retryAfter: 5,
  });
}
