import { ClusterError } from "@cria/core";
import { z } from "zod";
import type { BusStore, RecordEntry } from "./bus-store.js";
import { type PolicyPointer, PROTOCOL, type PublishedPolicy } from "./job-bus.js";
import { readMessage } from "./job-record.js";

const KEY = "policy";
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const schema = z.object({
  protocol: z.literal(PROTOCOL),
  run: sha256,
  version: z.int().min(0),
  weights: sha256,
});

function readEntry({ text, revision }: RecordEntry): PublishedPolicy {
  const { run, version, weights } = readMessage("the policy", schema, text);
  return { run, version, weights, revision };
}

export async function readPolicy({ control }: BusStore): Promise<PublishedPolicy | undefined> {
  const entry = await control.get(KEY);
  return entry && readEntry(entry);
}

export async function publishPolicy(
  store: BusStore,
  policy: PolicyPointer,
  seen: PublishedPolicy | undefined,
): Promise<PublishedPolicy> {
  const { run, version, weights } = policy;
  const checked = readMessage("the policy", schema, JSON.stringify({ protocol: PROTOCOL, run, version, weights }));
  const revision = await store.control.set(KEY, JSON.stringify(checked), seen?.revision ?? 0);
  if (revision !== undefined) return { run, version, weights, revision };
  const newest = await readPolicy(store);
  // A lost store has no policy, and no other coordinator has published one yet.
  if (!newest && seen) return publishPolicy(store, policy, undefined);
  // The pointer may be ours although its answer was lost.
  const { revision: before = 0 } = seen ?? {};
  const isOurs = newest?.run === run && newest.version === version && newest.weights === weights;
  if (newest && newest.revision > before && isOurs) return newest;
  throw new ClusterError("was replaced by another coordinator", {
    code: "cluster/stale-policy",
    subject: "the policy",
    expected: seen ? `version ${seen.version} as the newest` : "no policy yet",
    received: newest ? `version ${newest.version}` : "none",
    remedy: "stop: only the holder of the lease may publish",
  });
}

export async function watchPolicy(
  store: BusStore,
  onPolicy: (policy: PublishedPolicy) => void,
  signal: AbortSignal,
  report: (problem: ClusterError) => void,
): Promise<void> {
  let newest = 0;
  const take = (entry: RecordEntry | undefined) => {
    if (entry === undefined || entry.revision <= newest || signal.aborted) return;
    newest = entry.revision;
    try {
      onPolicy(readEntry(entry));
    } catch (problem) {
      report(problem as ClusterError);
    }
  };
  await store.control.watch("all", (key, entry) => key === KEY && take(entry), signal);
  // Once: a watch that could not begin is tried again.
  store.onReconnect(() => void store.control.get(KEY).then(take, () => {}));
}
