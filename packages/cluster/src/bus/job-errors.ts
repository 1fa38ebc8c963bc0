import { ClusterError } from "@cria/core";
import type { JobKindName } from "./job-bus.js";
import { type JobMessage, type JobRecord, jobName } from "./job-record.js";

export const closedError = (kind: JobKindName) =>
  new ClusterError("the bus is closed", { code: "cluster/closed", subject: `a job ${kind}` });

export const withdrawnError = (kind: JobKindName, id: string) =>
  new ClusterError("was withdrawn by another submitter", {
    code: "cluster/withdrawn",
    subject: jobName(kind, id),
  });

export const withdrawError = ({ kind, id }: JobMessage, cause: unknown) =>
  new ClusterError("could not be withdrawn", {
    code: "cluster/not-withdrawn",
    subject: jobName(kind, id),
    received: String(cause),
    cause,
  });

/** @param record of an open job that no worker may begin, or of one that was given up. */
export function givenUpError(kind: JobKindName, id: string, maxTries: number, record: JobRecord): ClusterError {
  const { length } = record.tries;
  const last = record.tries.at(-1);
  const failed = record.tries.findLast(({ reason }) => reason !== undefined);
  const subject = jobName(kind, id);
  const expected = `a result within ${maxTries} ${maxTries === 1 ? "try" : "tries"}`;
  if (!failed)
    return new ClusterError("was lost with each worker that began it", {
      code: "cluster/lost",
      subject,
      expected,
      received: `${length} ${length === 1 ? "try" : "tries"}, the last by worker ${last?.worker}: no sign of life while it ran`,
    });
  return new ClusterError(`was given up after ${length} ${length === 1 ? "try" : "tries"}`, {
    code: "cluster/given-up",
    subject,
    expected,
    received: `from worker ${failed.worker}: ${failed.reason}`,
  });
}

export function declinedError(kind: JobKindName, id: string, declined: Record<string, string>): ClusterError {
  const reasons = Object.entries(declined).sort(([left], [right]) => (left < right ? -1 : 1));
  return new ClusterError("was declined by every worker", {
    code: "cluster/declined",
    subject: jobName(kind, id),
    received: reasons
      .slice(0, 10)
      .map(([worker, reason]) => `${worker}: ${reason}`)
      .join("; "),
    remedy: "start a worker that has what the job needs",
  });
}

export function deadlineError(
  kind: JobKindName,
  id: string,
  deadlineMs: number,
  record: JobRecord | undefined,
): ClusterError {
  const last = record?.tries.at(-1);
  return new ClusterError("is past its deadline", {
    code: "cluster/deadline",
    subject: jobName(kind, id),
    expected: `a result within ${deadlineMs} ms`,
    received: last ? `begun by worker ${last.worker}, no result` : "begun by no worker",
  });
}

export const conflictError = (id: string, worker: string, record: JobRecord) =>
  new ClusterError("has a second result with another hash", {
    code: "cluster/conflict",
    subject: `job ${id.slice(0, 12)}`,
    expected: `${record.result?.hash.slice(0, 12)} of worker ${record.result?.worker}, which was taken`,
    received: `another of worker ${worker}, which was not`,
    remedy: "check that both workers have the same class",
  });
