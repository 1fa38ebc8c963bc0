import { randomInt } from "node:crypto";
import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { hasFailed, type ScoreShard } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { ClusterView } from "@cria/records";
import { holdConversation } from "@cria/rollout/internal";
import type { CoordinatedRun, Coordination } from "@cria/trainer";
import { OTHER_CLASS, readLag } from "@cria/trainer/internal";
import { z } from "zod";
import type { JobBus, JobKindName, WorkerInfo } from "../bus/job-bus.js";
import { CoordinatorImages } from "../images/coordinator-images.js";
import { readImageLimits } from "../images/image-limits.js";
import { gradientJob, rolloutJob, scoreJob } from "../jobs/job-kinds.js";
import { type Packed, receive } from "../jobs/packed.js";
import { readGradient, readScores } from "../jobs/results.js";
import type { WeightsEngine } from "../jobs/weights.js";
import { Announcer } from "./announce-workers.js";
import { auditGradient, auditScores } from "./audit.js";
import { auditConversation, findContradiction } from "./audit-conversation.js";
import type { Verdict } from "./compare-records.js";
import { Dispatcher } from "./dispatcher.js";
import type { Leader } from "./lead.js";
import { Ledger } from "./ledger.js";
import { openRun } from "./open-run.js";
import { makePortable } from "./portable-work.js";
import { Publisher } from "./publisher.js";
import { receiveConversation } from "./receive-conversation.js";
import { RemoteJobs, type Taken } from "./remote-jobs.js";
import { SamplerCheck } from "./sampler-check.js";
import { storeCheckpoint } from "./stored-checkpoints.js";
import { surviveLosses } from "./survive-losses.js";
import { tellProblems } from "./tell-problems.js";
import { waitForWorkers } from "./wait-for-workers.js";
import { WorkerMetrics } from "./worker-metrics.js";

/** Time between two checks whether the bus still has the data that later workers need. */
const RENEW_MS = 3_600_000;

const DRAWS = 2 ** 32;
const FORGET_MS = 2000;
/** Checks for overdue jobs within `silence_s`. */
const LOOKS = 4;
/** Failed conversations of one worker in a row that cause an audit. */
const MANY_FAILURES = 8;

export interface BusOfRun {
  bus: JobBus;
  /** Name of the bus in texts for people. */
  name: string;
  leader: Leader;
}

/** A job that workers and this process can do. */
interface SharedWork<T> {
  /** See `Work.order`. */
  order?: number;
  here: () => Promise<T>;
  /**
   * Does the work here while a worker has it, too; the signal means that the worker finished first. Default: `here`,
   * which then runs to its end.
   */
  copy?: (signal: AbortSignal) => Promise<T>;
  away: (signal: AbortSignal) => Promise<Taken<T>>;
  /** Computes the job again. */
  audit: (taken: Taken<T>) => Promise<{ verdict: Verdict; own: T }>;
  /** True if the result must be computed again. */
  isSuspect?: (taken: Taken<T>) => boolean | Promise<boolean>;
}

/** Hands out a run's work over a bus; implements `TrainingBus.coordinate`. */
export async function coordinate({ bus, name, leader }: BusOfRun, run: CoordinatedRun): Promise<Coordination> {
  const { config, report, environment } = run;
  const { tokenizer } = run.policy;
  const { cluster } = config;
  const closing = new AbortController();
  const signals = [closing.signal, ...(run.signal ? [run.signal] : [])];
  // Each job and each audit adds a listener.
  setMaxListeners(0, ...signals);
  /** Actions for a bus that loses all its data, as far as the run is open. */
  const onLoss = { lose: () => {}, renew: async () => {} };
  const survival = surviveLosses(bus, {
    lose: () => onLoss.lose(),
    renew: () => onLoss.renew(),
    signal: closing.signal,
  });
  tellProblems(bus, report, closing.signal);
  const { engine, description, sha, renew } = await openRun(bus, run);
  onLoss.renew = renew;
  if (survival.losses > 0) await renew();
  let renewed = performance.now();
  const ledger = new Ledger(bus.stats);
  const samplers = new SamplerCheck();
  const publisher = new Publisher(bus, engine, { sha, weights: description.weights, lag: readLag(config) });
  const images = new CoordinatorImages(bus.blobs, readImageLimits(config));
  const jobs = new RemoteJobs(bus, ledger, images, {
    run: sha,
    class: description.class,
    maxTries: cluster.max_tries,
    deadlineMs: cluster.job_timeout_s === null ? undefined : 1000 * cluster.job_timeout_s,
    report,
  });
  onLoss.lose = () => jobs.lose();
  onLoss.renew = async () => {
    await renew();
    await publisher.repeat();
  };
  const mayDo = (worker: WorkerInfo, kind: JobKindName) =>
    !ledger.isUnwanted(worker.id) &&
    (worker.class === description.class || (kind === "rollout" && cluster.other_classes === "rollout"));
  const canDo = (worker: WorkerInfo, kind: JobKindName) => mayDo(worker, kind) && (worker.slots[kind] ?? 0) > 0;
  const dispatcher = new Dispatcher({
    takesPart: cluster.take_part,
    conversationsHere: engine.info.maxSequences,
    mayDo,
    patienceMs: 1000 * cluster.silence_s,
    onCopy: () => ledger.copied(),
  });
  const looking = setInterval(() => dispatcher.look(), (1000 * cluster.silence_s) / LOOKS);
  looking.unref();
  closing.signal.addEventListener("abort", () => clearInterval(looking), { once: true });
  const portable = makePortable(readImageLimits(config));
  const metrics = new WorkerMetrics(run.environment, report);
  const open = (result: Packed) => receive(bus, result, z.unknown(), "a result");
  const helps = (worker: WorkerInfo) =>
    Object.keys(worker.slots).some((kind) => mayDo(worker, kind as JobKindName)) && !worker.draining;
  const announcer = new Announcer(report, helps);
  let able = 0;
  let known: readonly WorkerInfo[] = [];
  const setWorkers = (workers: readonly WorkerInfo[]) => {
    known = workers;
    able = workers.filter((worker) => canDo(worker, "rollout")).length;
    announcer.setWorkers(workers);
    ledger.setWorkers(workers);
    dispatcher.setWorkers(workers);
  };
  await bus.watchWorkers(setWorkers, closing.signal);
  await publisher.publish();
  await waitForWorkers(
    cluster.wait_for_workers,
    () => able,
    () => ledger.view(0, 0).workers,
    run,
  );

  const shutOut = (worker: string, why: string, reason: string) => {
    if (!ledger.shutOut(worker, reason)) return;
    dispatcher.setWorkers(known);
    report?.({ type: "warning", text: `worker ${worker} is shut out: ${why}\n  ${reason}` });
  };

  /**
   * Does a job here, or gives it to a worker and sometimes audits the result: if they differ, this process's result
   * counts.
   */
  const share = async <T>(
    kind: JobKindName,
    { order, here, copy = here, away, audit, isSuspect = () => false }: SharedWork<T>,
  ): Promise<T> => {
    const count = async (done: Promise<T>) => {
      const value = await done;
      ledger.doneHere(kind);
      return value;
    };
    return dispatcher.run({
      kind,
      order,
      here: () => count(here()),
      copy: (stop) => count(copy(AbortSignal.any([stop, ...signals]))),
      away: async (stop) => {
        const taken = await survival.repeat((lost) => away(AbortSignal.any([stop, ...signals, lost])));
        // Chosen by chance: if it depended on the job, a worker could tell which ones are audited.
        if (randomInt(DRAWS) >= cluster.audit * DRAWS && !(await isSuspect(taken))) return taken.value;
        const { verdict, own } = await audit(taken);
        ledger.audited(taken.worker, verdict.is);
        if (verdict.is === "different")
          shutOut(taken.worker, `its ${kind} job has another result when computed here`, verdict.reason);
        if (verdict.is === "open" && ledger.mayTellOfOpen(taken.worker))
          report?.({
            type: "warning",
            text: `an audit of worker ${taken.worker} stays open: its ${kind} job is not trusted more than the worker is\n  ${verdict.reason}`,
          });
        return verdict.is === "same" || verdict.is === "none" ? taken.value : own;
      },
    });
  };
  /** Workers that must not score conversations, because the scores check these workers. */
  const listExcluded = ({ adapter }: ScoreShard, conversations: readonly { tokenIds: Int32Array }[]) => {
    // The reference's scores check nobody.
    if (!adapter) return [];
    const scorers = known.filter((worker) => canDo(worker, "score") && !worker.draining);
    return samplers.listExcluded(
      conversations,
      scorers.map(({ id }) => id),
    );
  };
  const verdictOf = (reason: string | null): Verdict =>
    reason === null ? { is: "same" } : { is: "different", reason };

  /**
   * Repeats here a conversation that failed with a worker: otherwise a worker that always fails could decide which
   * conversations are left out.
   */
  const auditFailure = async (
    { value, worker }: Taken<UnjudgedTrajectory>,
    here: () => Promise<UnjudgedTrajectory>,
  ) => {
    const own = await here();
    const error = value.error ?? "it was aborted";
    const inRow = ledger.failuresInRow(worker);
    if (hasFailed(own)) {
      ledger.held(worker, false);
      return { verdict: { is: "same" } as const, own };
    }
    return inRow >= MANY_FAILURES
      ? { verdict: { is: "different", reason: `its last ${inRow} conversations failed (${error})` } as const, own }
      : { verdict: { is: "open", reason: `it failed there, and not here: ${error}` } as const, own };
  };

  const publish = async () => {
    await publisher.publish();
    await jobs.forget();
    if (performance.now() - renewed < RENEW_MS) return;
    renewed = performance.now();
    await renew();
  };

  return {
    publish,
    converseBy: async (policy) => {
      if (policy === run.policy) await publish();
      const { engine: sampler } = policy;
      const weights = await publisher.keep(sampler as WeightsEngine);
      return (work, here, trace) => {
        const offer = jobs.offer(rolloutJob, {
          work: () => portable(work),
          weights,
          inOwnClass: cluster.other_classes === "refuse",
          read: async (result, meta) => {
            const held = await receiveConversation(bus, images, result, meta, work, run);
            return { ...held, metrics: metrics.ofConversation(held.metrics, work.row) };
          },
          trace,
        });
        return share("rollout", {
          order: work.step,
          here,
          copy: (signal) => holdConversation(sampler, work, { ...environment, tokenizer, signal }),
          away: async (signal) => {
            const taken = await offer(signal);
            const { value, worker, isOwnClass } = taken;
            // The step weights conversations of another sampler.
            if (!isOwnClass) value.metrics[OTHER_CLASS] = 1;
            ledger.held(worker, hasFailed(value));
            samplers.heldBy(value.tokenIds, worker, isOwnClass);
            return taken;
          },
          audit: async (taken) => {
            if (hasFailed(taken.value)) return auditFailure(taken, here);
            const verdict = await auditConversation({ ...run, policy }, work, taken.value, taken.isOwnClass);
            // Repeated only if necessary, since its tools run again.
            return { verdict, own: verdict.is === "different" ? await here() : taken.value };
          },
          isSuspect: async ({ value, worker }) =>
            ledger.failuresInRow(worker) >= MANY_FAILURES ||
            (await findContradiction({ ...run, policy }, work, value)) !== null,
        });
      };
    },
    score: (shard, here, conversations) =>
      share("score", {
        here,
        away: jobs.offer(scoreJob, {
          work: () => shard,
          weights: publisher.live,
          inOwnClass: true,
          avoid: () => listExcluded(shard, conversations),
          read: async (result) => readScores(await open(result), shard),
        }),
        audit: async ({ value }) => {
          const own = await here();
          return { verdict: verdictOf(auditScores(value, own)), own };
        },
      }),
    compute: (work, here) =>
      share("gradient", {
        here,
        away: jobs.offer(gradientJob, {
          work: () => work,
          weights: publisher.live,
          inOwnClass: true,
          read: async (result) => {
            const found = readGradient(await open(result), engine.info);
            return { ...found, metrics: metrics.ofGradient(found.metrics) };
          },
        }),
        audit: async ({ value }) => {
          const own = await here();
          return { verdict: verdictOf(auditGradient(value, own)), own };
        },
      }),
    checkLogprobs: (conversations, staleness) => {
      for (const [worker, reason] of samplers.check(conversations, staleness))
        shutOut(worker, "the step computed other logprobs for its conversation", reason);
    },
    saveCheckpoint: (checkpoint) => storeCheckpoint(bus, leader, checkpoint, { report }),
    takeMetrics: () => ({ ...ledger.takeMetrics(able, publisher, images.bytes), ...samplers.metrics() }),
    view: (): ClusterView => ({
      bus: name,
      coordinator: `${hostname()}/${process.pid}`,
      term: leader.term,
      class: description.class,
      policy: { version: publisher.version, bytes: publisher.bytes, seconds: publisher.seconds },
      ...ledger.view(publisher.sent, dispatcher.waiting),
    }),
    close: async () => {
      closing.abort();
      // Does not wait for an unreachable server: blobs expire there.
      await Promise.race([jobs.close(), delay(FORGET_MS, undefined, { ref: false })]);
    },
  };
}
