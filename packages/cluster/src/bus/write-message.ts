import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type JobKind, MAX_JOB_BYTES, PROTOCOL, type SubmitOptions } from "./job-bus.js";
import { boundText, cleanText, type JobMessage, jobId, jobName } from "./job-record.js";

/**
 * A job's message for the queue.
 * @throws ClusterError "cluster/invalid-payload" or "cluster/message-size".
 */
export function writeMessage(kind: JobKind<never, unknown> | JobKind, payload: unknown, options: SubmitOptions) {
  const parsed = (kind as JobKind).payload.safeParse(payload);
  const fail = (received: string, cause?: unknown) =>
    new ClusterError("has an invalid payload", {
      code: "cluster/invalid-payload",
      subject: `a job ${kind.name}`,
      received,
      cause,
    });
  if (!parsed.success) throw fail(cleanText(z.prettifyError(parsed.error)));
  let id: string;
  try {
    id = jobId(kind.name, payload);
  } catch (cause) {
    throw fail((cause as Error).message, cause);
  }
  const { maxTries = 3, trace = {} } = options;
  const message: JobMessage = { protocol: PROTOCOL, id, kind: kind.name, payload, maxTries, trace };
  return { message, text: boundText(jobName(kind.name, id), JSON.stringify(message), MAX_JOB_BYTES) };
}
