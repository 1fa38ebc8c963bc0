import { ConfigError } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { RunningStream } from "../running.js";
import type { Task } from "../task/task.js";
import type { TaskDefinition } from "../task/task-definition.js";
import type { Validation } from "../validation/validate.js";
import { makeAgentTask } from "./agent-task.js";
import type { TrainOptions, ValidationOptions } from "./train-options.js";
import type { TrainResult, TrainStep } from "./train-result.js";

/**
 * A training under way: await its result, which is of the steps that were taken, iterate over its steps, or both. Leaving the
 * iteration stops the training; its result says how it ended. A failure reaches everyone who awaits or iterates; where nobody
 * does it is an unhandled rejection.
 * @throws ConfigError, DataError, EngineError, HubError or ToolError, each naming what is wrong; TrainingInterrupted when the signal
 * aborted; ClusterError "cluster/lease-lost" when the lead of the bus was lost before the first step, or as the cause of TrainingInterrupted.
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
   * Ends the training after the step that it takes; what was done is saved, and the result is of that. A run that is over stays as
   * it is.
   */
  stop(): void {
    this.isStopping = true;
  }

  /**
   * Validates once more, after the step that the training takes; the training waits for it. Null where there are no held-out rows.
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
    // Read before anything is awaited: the caller may change them.
    const options = makeAgentTask(given);
    const { configFolder = process.cwd() } = options;
    const { trainTask } = await import("./train-task.js");
    return trainTask(options, {
      configFolder,
      onStep: (step) => this.add(step),
      isStopping: () => this.isStopping,
      afterStep: async (validate) => {
        for (const { resolve, reject } of this.evaluations.splice(0)) await validate().then(resolve, reject);
      },
    });
  }
}

interface PromiseWithResolversOf<T> {
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

/**
 * Trains a policy on a task: `await train({ model, task })`, or `for await (const step of train({ model, task }))`. It
 * begins at once, and several may run at a time, each in a run folder of its own (`name`, `folder`). Wrong options
 * throw where the training is awaited or iterated.
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

/** Rows decide the type of `row` that an agent sees. */
interface AgentTask<Item extends object | string> {
  rows?: readonly Item[] | string | readonly string[];
  agent?: TaskDefinition<Item extends object ? Item : DatasetRow>["agent"];
}

/** Held-out rows, and those that a sampler sees, are of the task's kind, or of the agent's; they decide no type. */
type RowOf<Item extends object | string, Row extends object> = NoInfer<Item extends object ? Item : Row>;
