import type { LlamaModel } from "@cria/engine";
import { holdConversation } from "@cria/rollout/internal";
import { computePolicyGradient } from "@cria/trainer/internal";
import type { z } from "zod";
import type { JobBus, JobContext, JobHandler } from "../bus/job-bus.js";
import { hideIds } from "../jobs/image-tokens.js";
import { gradientJob, type JobMeta, type JobPayload, type JobValue, rolloutJob, scoreJob } from "../jobs/job-kinds.js";
import { receive, send } from "../jobs/packed.js";
import { conversationWorkSchema, gradientWorkSchema, scoreWorkSchema } from "../jobs/works.js";
import type { PreparedRun } from "./prepare-run.js";
import { Superseded } from "./weights-lock.js";

export interface JobOptions {
  bus: Pick<JobBus, "blobs">;
  /** The worker's id. */
  id: string;
  /** Conversations at once. */
  slots: number;
  onWarning(text: string): void;
  /** Called after each job that was done, or failed. */
  onEnd(outcome: "done" | "failed"): void;
}

/** The outcome of a piece of work: `record` differs from run to run. */
interface Done {
  result: unknown;
  record?: unknown;
}

type Handler = JobHandler<JobPayload, JobValue>;

/** The jobs that a worker takes for a run, as far as it is prepared for them. */
export function makeHandlers(run: PreparedRun, options: JobOptions): Handler[] {
  const { engine, policies, images, conversations, scores, losses } = run;
  const handlers: Handler[] = [];
  if (!engine || !policies || !images) return handlers;
  const add = <Work>(
    kind: Handler["kind"],
    slots: number,
    schema: z.ZodType<Work>,
    work: (given: Work, engine: LlamaModel, signal: AbortSignal, context: JobContext) => Promise<Done>,
  ) => {
    const doJob: Handler["run"] = async (payload, context) => {
      declineOthers(payload, run, options.id, context);
      const { weights, version, work: packed } = payload;
      try {
        const shown = images.ofJob();
        const given = await receive(options.bus, packed, schema, "the work", shown);
        const { seconds, result, record } = await policies.use(
          kind.name,
          { weights, version, signal: context.signal },
          async (policy, signal) => measure(() => work(given, policy, signal, context)),
        );
        const value = { result: await send(options.bus, result, shown) };
        const meta: JobMeta = { class: run.class, seconds };
        if (record !== undefined) meta.record = await send(options.bus, record);
        options.onEnd("done");
        return { value, meta };
      } catch (error) {
        if (error instanceof Superseded) context.giveBack();
        if (!context.signal.aborted) options.onEnd("failed");
        throw error;
      }
    };
    handlers.push({ kind, slots, run: doJob });
  };

  if (conversations) {
    const { environment, tokenizer } = conversations;
    const { onWarning } = options;
    add(rolloutJob, options.slots, conversationWorkSchema, async (work, policy, signal, { trace: parent }) => {
      const held = await holdConversation(policy, work, { ...environment, tokenizer, signal, parent, onWarning });
      const { metrics, timeline, ...result } = held;
      return { result: hideIds(result, engine), record: { metrics, timeline } };
    });
  }
  // The engine computes one at a time; the previous result is sent meanwhile.
  if (scores)
    add(scoreJob, 2, scoreWorkSchema, async (shard, policy, signal) => ({
      result: await policy.computeScores(shard, { signal }),
    }));
  if (losses)
    add(gradientJob, 2, gradientWorkSchema, async (work, policy, signal) => ({
      result: await computePolicyGradient(policy, work, { algorithms: losses, signal }),
    }));
  return handlers;
}

/** The result of work, and its duration in seconds without the wait for weights. */
async function measure(work: () => Promise<Done>): Promise<Done & { seconds: number }> {
  const started = performance.now();
  const done = await work();
  return { ...done, seconds: (performance.now() - started) / 1000 };
}

function declineOthers(payload: JobPayload, run: PreparedRun, id: string, { decline }: JobContext): void {
  if (payload.avoid.includes(id)) decline("is excluded from it");
  if (payload.run !== run.sha) decline("prepares another run");
  if (payload.class !== null && payload.class !== run.class) decline(`computes bits of class ${run.class}`);
}
