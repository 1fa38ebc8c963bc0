import { ClusterError } from "@cria/core";
import { cleanText } from "../bus/job-record.js";

/** Why a bus cannot be read on a server that answers. @param cause what the server said last; undefined: there is nothing. */
export function missingBusError(prefix: string, cause: unknown): ClusterError {
  const subject = `the bus ${prefix}`;
  const received = cause instanceof Error ? cleanText(cause.message) : "nothing";
  // Of the server, or of the account alone: the client has two kinds of errors, and exports one.
  if (/jetstream (is )?not enabled/i.test(received)) {
    return new ClusterError("needs JetStream, which this server or account does not have", {
      code: "cluster/no-jetstream",
      subject,
      received,
      remedy: "start nats-server with -js, or enable jetstream in its configuration",
      cause,
    });
  }
  if (/permission/i.test(received)) {
    return new ClusterError("may not be read with these credentials", {
      code: "cluster/refused",
      subject,
      received,
      remedy: "name the file of a user who has this role on this bus, and its prefix",
      cause,
    });
  }
  return new ClusterError("is not there: no coordinator has created it", {
    code: "cluster/no-bus",
    subject,
    received,
    remedy: "start the coordinator, and give both the same prefix",
    cause,
  });
}
