import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { hashSeed } from "@cria/core";
import type { RoleRewards } from "@cria/rollout";
import { RequestError, refuseField } from "../request-error.js";
import { ResponseMemory } from "./response-memory.js";
import { RetryMemory } from "./retry-memory.js";
import type { ServedModel, ServedSession } from "./served-model.js";

export interface SessionsOptions {
  model: ServedModel;
  /** Base seed of sessions, combined with their ids: the same id has the same seed. */
  seed: number;
  /** True if a request may name a session that does not exist yet; it is created then. */
  implicit: boolean;
  /** Most sessions; beyond it those that were idle longest are removed. */
  most: number;
  /**
   * Most tokens in the records of requests without a session; the conversation that was idle longest is forgotten
   * first.
   */
  mostAnonymousTokens: number;
}

/** A reward as a client reported it. */
export interface ReportedReward {
  reward: number | null;
  /** By role; absent: none were reported. */
  rewards?: RoleRewards;
  node: string | null;
  text: string | null;
}

/** A session and the endpoint's data for it. */
export interface SessionRecord {
  readonly id: string;
  readonly session: ServedSession;
  readonly responses: ResponseMemory;
  readonly rewards: ReportedReward[];
  /** Answers for clients' retries. */
  readonly retries: RetryMemory;
  /** Aborts when the session ends. */
  readonly controller: AbortController;
  metadata: unknown;
  /** Its running requests. */
  running: number;
  /** Tokens of all its answers and their prompts. */
  tokens: number;
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Most answers kept for retries, for each session and for all requests without one. */
const MOST_RETRIES = 16;
const MOST_ANONYMOUS_RETRIES = 256;

/** Most ids of ended sessions that are remembered, so that a late request gets 410. */
const MOST_ENDED = 4096;

/** All sessions, and the one that all requests without a session share. */
export class Sessions {
  private readonly named = new Map<string, SessionRecord>();
  /** The record of all requests without a session. */
  readonly anonymous: SessionRecord;
  private readonly ended = new Set<string>();

  constructor(private readonly options: SessionsOptions) {
    const { model, seed, mostAnonymousTokens } = options;
    this.anonymous = makeRecord(model.openPool({ seed, mostTokens: mostAnonymousTokens }), MOST_ANONYMOUS_RETRIES);
  }

  /** Number of sessions that clients named or created. */
  get size(): number {
    return this.named.size;
  }

  /**
   * @throws RequestError 409 when a session of that id exists or existed; 400 for an invalid id; 429 when all are in
   * use.
   */
  create({ id, seed, metadata }: { id?: string; seed?: number; metadata?: unknown } = {}): SessionRecord {
    if (id !== undefined && (this.named.has(id) || this.ended.has(id)))
      throw new RequestError(409, "exists already", {
        code: "serve/session-exists",
        subject: `session ${id}`,
        field: "id",
      });
    const record = this.open(id ?? randomUUID(), seed);
    record.metadata = metadata;
    return record;
  }

  /** @throws RequestError 404 for an unknown session, 410 for one that has ended. */
  get(id: string): SessionRecord {
    const record = this.named.get(id);
    if (record) return touch(this.named, id, record);
    const hasEnded = this.ended.has(id);
    throw new RequestError(hasEnded ? 410 : 404, hasEnded ? "has ended" : "is not known", {
      code: hasEnded ? "serve/session-ended" : "serve/unknown-session",
      subject: `session ${id.slice(0, 128)}`,
      remedy: "make one with POST /sessions",
    });
  }

  /** The session that a request names, created on first use where that is allowed. */
  use(id: string): SessionRecord {
    const isNew = this.options.implicit && !this.named.has(id) && !this.ended.has(id);
    return isNew ? this.open(id, undefined) : this.get(id);
  }

  /** Ends a session: its requests are aborted, its record is returned for the last time. */
  end(id: string): SessionRecord {
    const record = this.get(id);
    this.drop(record);
    return record;
  }

  /** Ends a session whose id will not be used again, and keeps nothing of it. */
  forget(id: string): void {
    const record = this.named.get(id);
    if (record) this.drop(record);
    this.ended.delete(id);
  }

  dispose(): void {
    for (const record of this.named.values()) this.drop(record);
    this.anonymous.session.dispose();
  }

  private open(id: string, seed: number | undefined): SessionRecord {
    if (!SESSION_ID.test(id))
      throw refuseField(
        "id",
        "1 to 128 letters, digits, dots, dashes and underscores",
        JSON.stringify(id.slice(0, 140)),
      );
    this.makeRoom();
    const session = this.options.model.openSession({ id, seed: seed ?? hashSeed(this.options.seed, id) });
    const record = makeRecord(session, MOST_RETRIES);
    this.named.set(id, record);
    return record;
  }

  private makeRoom(): void {
    if (this.named.size < this.options.most) return;
    const idle = [...this.named.values()].find((record) => record.running === 0);
    if (idle) this.drop(idle);
    else
      throw new RequestError(429, "has no room for another session", {
        code: "serve/too-many-sessions",
        subject: "server",
        expected: `at most ${this.options.most} sessions`,
        received: "one more, and all are in use",
        remedy: "end sessions with POST /sessions/{id}/end",
        retryAfter: 1,
      });
  }

  private drop(record: SessionRecord): void {
    this.named.delete(record.id);
    this.ended.add(record.id);
    for (const id of this.ended) {
      if (this.ended.size <= MOST_ENDED) break;
      this.ended.delete(id);
    }
    record.controller.abort(
      new RequestError(410, "has ended", { code: "serve/session-ended", subject: `session ${record.id}` }),
    );
    record.session.dispose();
  }
}

function makeRecord(session: ServedSession, mostRetries: number): SessionRecord {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return {
    id: session.id,
    session,
    responses: new ResponseMemory(),
    rewards: [],
    retries: new RetryMemory(mostRetries),
    controller,
    metadata: undefined,
    running: 0,
    tokens: 0,
  };
}

/** Moves a record to the end, where the newest use stands. */
function touch(records: Map<string, SessionRecord>, key: string, record: SessionRecord): SessionRecord {
  records.delete(key);
  records.set(key, record);
  return record;
}
