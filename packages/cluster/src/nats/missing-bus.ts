import { ClusterError } from "@cria/core";
import { cleanText } from "../bus/job-record.js";

/**
 * The error for a bus that cannot be read although the server answers.
 * @param cause the server's last error; undefined: there is no bus.
 */
export function missingBusError(prefix: string, cause: unknown): ClusterError {
  const subject = `the bus ${prefix}`;
  const received = cause instanceof Error ? cleanText(cause.message) : "nothing";
  // Disabled for the server or for the account: the client has an error class for each, and exports only one.
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
    return new ClusterError("does not allow these credentials to read it", {
      code: "cluster/refused",
      subject,
      received,
      remedy: "give the key or credentials of a user with this role on this bus, and the bus's prefix",
      cause,
    });
  }
  return new ClusterError("does not exist: no coordinator has created it", {
    code: "cluster/no-bus",
    subject,
    received,
    remedy: "start the coordinator, and give both the same prefix",
    cause,
  });
}
