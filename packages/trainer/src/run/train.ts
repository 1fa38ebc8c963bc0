import { ConfigError } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import type { Report } from "../events.js";
import { RunningStream } from "../running.js";
import type { Task } from "../task/task.js";
import type { TaskDefinition } from "../task/task-definition.js";
import type { Validation } from "../validation/validate.js";
import { makeAgentTask } from "./agent-task.js";
import type { TrainOptions, ValidationOptions } from "./train-options.js";
import { describeResult, describeStep, type TrainResult, type TrainStep } from "./train-result.js";

/**
 * A running training: await its result, iterate over its steps, or both. The result covers the steps that were taken.
 * Leaving the iteration stops the training, whose result can still be awaited. A failure rejects every await and
 * iteration; without any it is an unhandled rejection.
 * @throws ConfigError, DataError, EngineError, HubError or ToolError, each naming the cause; TrainingInterrupted when
 * the signal aborted; ClusterError "cluster/lease-lost" when the lead of the bus was lost before the first step, or as
 * the cause of TrainingInterrupted.
 */
export class TrainRun extends RunningStream<TrainResult, TrainStep> {
  protected readonly result: Promise<TrainResult>;
  private readonly evaluations: PromiseWithResolversOf<Validation | null>[] = [];
  private isStopping = false;

  constructor(options: TrainOptions) {
    super();
    this.result = this.watch(this.run(options)).finally(() => this.refuseEvaluations());
  }

  /**
   * Ends the training after the current step. Finished steps are saved, and the result covers them. Has no effect on a
   * training that has ended.
   */
  stop(): void {
    this.isStopping = true;
  }

  /**
   * Runs an additional validation after the current step; the training waits for it. Returns null if there are no
   * held-out rows.
   * @throws ConfigError when no further step comes; the signal's reason when it aborts.
   */
  evaluate(): Promise<Validation | null> {
    return new Promise((resolve, reject) => {
      this.evaluations.push({ resolve, reject });
      if (this.isOver) this.refuseEvaluations();
    });
  }

  private refuseEvaluations(): void {
    for (const { reject } of this.evaluations.splice(0))
      reject(
        new ConfigError("comes after the training's last step", {
          code: "config/run-over",
          subject: "evaluate()",
          expected: "a training that takes further steps",
          received: `one that ended after ${this.items.length} steps`,
          remedy: "load what it trained: loadPolicy(model, { lora: { path: adapter } })",
        }),
      );
  }

  protected leave(): void {
    this.stop();
  }

  private async run(given: TrainOptions): Promise<TrainResult> {
    // Read the options before the first await, because the caller may change them later.
    const options = makeAgentTask(given);
    const { configFolder = process.cwd() } = options;
    const report: Report = (event) => {
      if (event.type === "step") this.add(describeStep(event));
      options.report?.(event);
    };
    // The modules that run a task are loaded now, because a program that imports Cria shall start at once.
    const { openTask } = await import("./open-task.js");
    const { runTraining } = await import("./run-training.js");
    const { training, trackers, explain, dispose } = await openTask(options, configFolder, report);
    try {
      const summary = await runTraining(training, {
        configFolder,
        report,
        trackers,
        isStopping: () => this.isStopping,
        afterStep: async (validate) => {
          for (const { resolve, reject } of this.evaluations.splice(0)) await validate().then(resolve, reject);
        },
      });
      return describeResult(training, summary);
    } catch (error) {
      throw explain(error);
    } finally {
      await dispose();
    }
  }
}

interface PromiseWithResolversOf<T> {
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

/**
 * Trains a policy on a task: `await train({ model, task })`, or `for await (const step of train({ model, task }))`.
 * Training starts immediately, and several trainings may run concurrently, each in its own run folder (`name`,
 * `folder`). Wrong options throw when the training is awaited or iterated.
 */
export function train<Item extends object | string = string, Row extends object = object>(
  options: Omit<TrainOptions, "task" | "rows" | "agent" | "validation" | "sampler"> & {
    task?: Task<Row>;
    validation?: ValidationOptions<RowOf<Item, Row>>;
    sampler?: TrainOptions<RowOf<Item, Row>>["sampler"];
  } & AgentTask<Item>,
): TrainRun {
  return new TrainRun(options as TrainOptions);
}

/** The type of `rows` determines the type of `row` in the agent's argument. */
interface AgentTask<Item extends object | string> {
  rows?: readonly Item[] | string | readonly string[];
  agent?: TaskDefinition<Item extends object ? Item : DatasetRow>["agent"];
}

/**
 * Type of held-out rows and of a sampler's rows: that of the task's or the agent's rows. They do not take part in type
 * inference.
 */
type RowOf<Item extends object | string, Row extends object> = NoInfer<Item extends object ? Item : Row>;
