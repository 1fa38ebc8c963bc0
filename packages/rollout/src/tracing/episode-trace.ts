import { hasFailed, type Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { DatasetRow } from "../data/dataset-row.js";
import { describeModel, failSpan, nameModel } from "./trace-work.js";
import type { TraceCarrier, Tracer, TraceScope } from "./tracer.js";

export interface TracedEpisode {
  row: DatasetRow;
  sample: number;
  step: number;
  /** Number of earlier attempts at this sample. */
  attempt: number;
  /** Name of the agent loop. */
  loop: string;
  modelPath: string;
  /** Parent span from another process; left out: the episode is a trace of its own. */
  parent?: TraceCarrier;
}

/** The trace of one episode: its root is a span `invoke_agent` that lasts as long as the conversation. */
export class EpisodeTrace {
  /** Scope of the root span, set while the conversation runs and afterwards. */
  scope: TraceScope | null = null;
  /** Time when the conversation ended; its judge may take longer. */
  private endedAt: number | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly episode: TracedEpisode,
  ) {}

  /** Runs the conversation, or a part of it. An exception ends the trace. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { tracer } = this;
    if (this.scope) return tracer.within(this.scope.span, work);
    const scope = this.begin();
    this.scope = scope;
    try {
      return await tracer.within(scope.span, work);
    } catch (error) {
      this.fail(error);
      throw error;
    } finally {
      this.endedAt = Date.now();
    }
  }

  /** Headers with which another process continues this trace. Only while the conversation runs. */
  carry(): TraceCarrier {
    return this.scope ? this.tracer.carry(this.scope.span) : {};
  }

  /** Ends the root span with the outcome of the episode, or with the error that ended the run. */
  async endWith(judged: Promise<Trajectory>): Promise<void> {
    try {
      this.end(await judged);
    } catch (error) {
      this.fail(error);
    }
  }

  end(trajectory: UnjudgedTrajectory | Trajectory): void {
    const span = this.scope?.span;
    const { metrics, finishReason, numTurns, error } = trajectory;
    span?.set({
      "gen_ai.response.finish_reasons": [finishReason],
      "gen_ai.usage.input_tokens": (metrics.prefill_tokens ?? 0) + (metrics.reused_tokens ?? 0),
      "gen_ai.usage.output_tokens": metrics.decode_tokens ?? 0,
      "cria.turns": numTurns,
    });
    if (hasFailed(trajectory)) span?.fail(metrics.reward_failed ? "judge_failed" : "episode_failed", error);
    else if ("rewards" in trajectory)
      span?.set({
        "cria.reward": trajectory.reward,
        "cria.score": trajectory.rewards.score ?? undefined,
        "cria.success": trajectory.rewards.success ?? undefined,
      });
    span?.end(this.endedAt);
  }

  private fail(error: unknown): void {
    if (!this.scope) return;
    failSpan(this.scope.span, error);
    this.scope.span.end(this.endedAt);
  }

  private begin(): TraceScope {
    const { row, sample, step, attempt, loop, modelPath } = this.episode;
    const conversation = `${row.uid}/${step}/${sample}${attempt > 0 ? `/${attempt}` : ""}`;
    const span = this.tracer.start(
      `invoke_agent ${loop}`,
      {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": loop,
        "gen_ai.conversation.id": conversation,
        ...describeModel(nameModel(modelPath)),
        "cria.data_source": row.dataSource,
        "cria.uid": row.uid,
        "cria.row": row.index,
        "cria.sample": sample,
        "cria.step": step,
      },
      this.episode.parent ?? null,
    );
    return { tracer: this.tracer, span, conversation };
  }
}
