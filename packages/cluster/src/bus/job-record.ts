import { createHash } from "node:crypto";
import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type JobKindName, jobKindNames, MAX_MESSAGE_BYTES, PROTOCOL } from "./job-bus.js";

const protocol = z.object({ protocol: z.number() });
const hex = z.string().regex(/^[0-9a-f]{64}$/);
/** Texts of workers are shown in errors and on screens: bounded, without control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must go.
export const cleanText = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").slice(0, 500);
const reason = z.string().max(10_000).transform(cleanText);
export const workerId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);

/** A message in the queue. */
const messageSchema = z.object({
  protocol: z.literal(PROTOCOL),
  id: hex,
  kind: z.enum(jobKindNames),
  payload: z.unknown(),
  maxTries: z.int().min(1).max(100),
  trace: z.record(z.string(), z.string()),
});
export type JobMessage = z.infer<typeof messageSchema>;

/** The record of a job: its tries, declines and result. */
const recordSchema = z.object({
  protocol: z.literal(PROTOCOL),
  /** Workers only take open jobs. A done job stays done. */
  status: z.enum(["open", "done", "given-up", "withdrawn"]),
  /** One entry for each try; without a reason it is still running, or lost. */
  tries: z.array(z.object({ worker: workerId, reason: reason.optional() })).max(100),
  declined: z.record(workerId, reason),
  result: z.object({ value: z.unknown(), meta: z.unknown(), hash: hex, worker: workerId }).optional(),
  /** Workers that later gave another result. */
  conflicts: z.array(z.object({ worker: workerId, hash: hex })).max(100),
});
export type JobRecord = z.infer<typeof recordSchema>;

/** True if a worker may take a job: it has neither declined it nor failed at it. */
export const mayBegin = ({ declined, tries }: JobRecord, worker: string): boolean =>
  !Object.hasOwn(declined, worker) && !tries.some((each) => each.worker === worker && each.reason !== undefined);

export const openRecord = (): JobRecord => ({
  protocol: PROTOCOL,
  status: "open",
  tries: [],
  declined: {},
  conflicts: [],
});

/**
 * The canonical JSON of a value: equal values have equal JSON, with sorted keys.
 * @throws TypeError for values that JSON does not have.
 */
export function toCanonicalJson(value: unknown): string {
  if (value === null || typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${value} is not a number in JSON`);
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(",")}]`;
  if (typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype)
    throw new TypeError(
      `a ${typeof value === "object" ? value.constructor?.name : typeof value} is not a value in JSON`,
    );
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  entries.sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${toCanonicalJson(each)}`).join(",")}}`;
}

export const hashText = (text: string): string => createHash("sha256").update(text).digest("hex");
export const hashBytes = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
export const jobId = (kind: JobKindName, payload: unknown): string => hashText(toCanonicalJson({ kind, payload }));
/**
 * Key under which a worker stores the hash of its result. Every worker may write a job's record; only this worker's key
 * may write this one (`listPermissions`), so that no worker gives results in another's name.
 */
export const claimKey = (id: string, worker: string): string => `${id}.${worker}`;
export const claimOf = ({ value, meta = null }: { value?: unknown; meta?: unknown }): string =>
  hashText(toCanonicalJson([value, meta]));
/** A job's name in errors. */
export const jobName = (kind: JobKindName, id: string): string => `job ${kind} ${id.slice(0, 12)}`;

/**
 * Bounds a text's bytes.
 * @throws ClusterError "cluster/message-size".
 */
export function boundText(subject: string, text: string, most = MAX_MESSAGE_BYTES): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= most) return text;
  throw new ClusterError("is too large for a message", {
    code: "cluster/message-size",
    subject,
    expected: `at most ${most} bytes of JSON`,
    received: `${bytes} bytes`,
    remedy: "put large columns into blobs, and send their SHA-256",
  });
}

/**
 * Reads another side's message.
 * @throws ClusterError "cluster/protocol" with both versions, or "cluster/invalid-message".
 */
export function readMessage<T extends z.ZodType>(subject: string, schema: T, text: string): z.output<T> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ClusterError("is not JSON", { code: "cluster/invalid-message", subject, cause });
  }
  const spoken = protocol.safeParse(value).data?.protocol;
  if (spoken !== undefined && spoken !== PROTOCOL) {
    throw new ClusterError("speaks another version of the protocol", {
      code: "cluster/protocol",
      subject,
      expected: `protocol ${PROTOCOL}`,
      received: `protocol ${spoken}`,
      remedy: "install the same version of Cria on coordinator and workers",
    });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ClusterError("is invalid", {
    code: "cluster/invalid-message",
    subject,
    received: cleanText(z.prettifyError(parsed.error)),
  });
}

export const readJobMessage = (text: string): JobMessage => readMessage("a queued job", messageSchema, text);
export const readJobRecord = (id: string, text: string): JobRecord =>
  readMessage(`record of job ${id.slice(0, 12)}`, recordSchema, text);
