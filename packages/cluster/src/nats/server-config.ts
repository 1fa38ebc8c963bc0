import { ClusterError } from "@cria/core";
import { workerId } from "../bus/job-record.js";
import { inboxOf, nameStreams, type Role, roles } from "./names.js";

export interface NatsServerConfig {
  /**
   * Public nkeys (`U...`) by role, as `nk -inkey FILE -pubout` prints them. Workers by id, where only its key may use
   * an id (`cria worker --id`), or as a list of keys that may use any.
   */
  users: Record<Exclude<Role, "worker">, readonly string[]> & { worker: readonly string[] | Record<string, string> };
  /** Folder of the server's streams. */
  storeDir: string;
  /** Bytes that all streams together may take on disk. */
  maxFileBytes: number;
  /**
   * PEM files of the server. With `clientCaFile` every client must show a certificate of that authority, in addition to
   * its key.
   */
  tls: { certFile: string; keyFile: string; clientCaFile?: string };
  /** Default: "cria". */
  prefix?: string;
}

/** Requests of every client of JetStream: its account's limits, and flow control. */
const common = ["$JS.API.INFO", "$JS.FC.>"];

/**
 * Subjects that a role may publish to. Answers come to its own inbox, and nothing else does.
 * @param worker the only id under which this worker may register and give results; default: any.
 */
export function listPermissions(role: Role, prefix = "cria", worker = ">"): string[] {
  const { jobs, jobSubject, records, workers, control, blobs } = nameStreams(prefix);
  const [recordsStream, workersStream, controlStream] = [records, workers, control].map((name) => `KV_${name}`);
  const blobsStream = `OBJ_${blobs}`;
  const read = (stream: string) => [`$JS.API.STREAM.MSG.GET.${stream}`];
  const watch = (stream: string) => [
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
  ];
  switch (role) {
    case "coordinator": {
      const streams = [jobs, recordsStream!, workersStream!, controlStream!, blobsStream];
      const manage = (stream: string) => [
        ...["INFO", "CREATE", "UPDATE", "PURGE", "MSG.GET", "MSG.DELETE"].map(
          (verb) => `$JS.API.STREAM.${verb}.${stream}`,
        ),
        ...watch(stream),
      ];
      return [
        ...streams.flatMap(manage),
        `$JS.API.CONSUMER.DURABLE.CREATE.${jobs}.*`,
        `$JS.API.CONSUMER.MSG.NEXT.${jobs}.*`,
        `$JS.ACK.${jobs}.>`,
        ...common,
        `${jobSubject}.>`,
        ...[records, workers, control].map((name) => `$KV.${name}.>`),
        `$O.${blobs}.>`,
      ];
    }
    case "worker":
      return [
        `$JS.API.CONSUMER.INFO.${jobs}.*`,
        `$JS.API.CONSUMER.MSG.NEXT.${jobs}.*`,
        `$JS.ACK.${jobs}.>`,
        ...common,
        ...[recordsStream!, controlStream!, blobsStream].flatMap(read),
        ...watch(controlStream!),
        ...watch(blobsStream),
        `$JS.API.STREAM.INFO.${blobsStream}`,
        `$KV.${records}.*`,
        `$KV.${records}.*.${worker}`,
        `$KV.${workers}.${worker}`,
        `$O.${blobs}.>`,
      ];
    case "observer":
      return [...common, ...[workersStream!, controlStream!].flatMap((stream) => [...read(stream), ...watch(stream)])];
  }
}

/** @throws ClusterError "cluster/invalid-worker" for an invalid id. */
function listKeys(keys: readonly string[] | Record<string, string>): { nkey: string; id?: string }[] {
  if (Array.isArray(keys)) return keys.map((nkey: string) => ({ nkey }));
  return Object.entries(keys as Record<string, string>).map(([id, nkey]) => {
    if (workerId.safeParse(id).success) return { nkey, id };
    throw new ClusterError("is not a worker id", {
      code: "cluster/invalid-worker",
      subject: JSON.stringify(id),
      expected: "1 to 64 letters, digits, - and _",
    });
  });
}

const quote = (text: string): string => JSON.stringify(text);

/**
 * The configuration of a nats-server for one bus: TLS, a user for each nkey, and each user's permissions. Unknown keys
 * are refused.
 * @throws ClusterError "cluster/invalid-nkey" for a text that is no public nkey of a user.
 */
export function describeNatsServer({ users, storeDir, maxFileBytes, tls, prefix }: NatsServerConfig): string {
  const blocks = roles.flatMap((role) =>
    listKeys(users[role]).map(({ nkey, id }) => {
      if (!/^U[A-Z2-7]{55}$/.test(nkey)) throw nkeyError(role);
      const permissions = listPermissions(role, prefix, id).map((subject) => `          ${quote(subject)}`);
      return [
        `    { # ${id === undefined ? role : `${role} ${id}`}`,
        `      nkey: ${nkey}`,
        "      permissions: {",
        "        publish: { allow: [",
        ...permissions,
        "        ] }",
        `        subscribe: { allow: [${quote(`${inboxOf(role)}.>`)}] }`,
        "      }",
        "    }",
      ].join("\n");
    }),
  );
  return `max_payload: 1MB
jetstream {
  store_dir: ${quote(storeDir)}
  max_file_store: ${maxFileBytes}
}
tls {
  cert_file: ${quote(tls.certFile)}
  key_file: ${quote(tls.keyFile)}
${tls.clientCaFile ? `  ca_file: ${quote(tls.clientCaFile)}\n  verify: true\n` : ""}}
authorization {
  users: [
${blocks.join("\n")}
  ]
}
`;
}

// Without the text: it may be a seed.
const nkeyError = (role: Role) =>
  new ClusterError("is not the public nkey of a user", {
    code: "cluster/invalid-nkey",
    subject: `the nkey of a ${role}`,
    expected: "56 letters and digits that begin with U",
    remedy: "print it with: nk -inkey FILE -pubout",
  });
