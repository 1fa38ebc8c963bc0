import { randomUUID } from "node:crypto";
import { ToolError } from "@cria/core";
import { isUsableNumber, usableNumber } from "@cria/episodes/internal";
import { BaseTool, type ParsedToolCall, type ToolImages } from "@cria/tools";
import { copyData } from "../copy-data.js";
import type { DatasetRow } from "../data/dataset-row.js";
import { selectTools } from "../data/select-tools.js";
import { describeData } from "../plain-data.js";
import { describeError, runWithDeadline } from "../run-with-deadline.js";
import type { MultiTurnOptions } from "./agent-loop.js";
import type { LoopMetric } from "./loop-counters.js";
import { runToolCall, type ToolInstance } from "./run-tool-call.js";
import type { ToolOutcome } from "./tool-outcome.js";
import type { KeptTools, ToolStates } from "./tool-states.js";

/** Seconds that releasing an instance waits for calls that have timed out. */
const longestGraceS = 1;

interface EpisodeToolsOptions {
  tools: ReadonlyMap<string, BaseTool>;
  row: DatasetRow;
  multiTurn: MultiTurnOptions;
  agentData: Record<string, unknown>;
  addMetric: (name: LoopMetric, value: number) => void;
  /** Images for tools; left out: the policy takes no images, and tools get none. */
  images?: ToolImages;
  signal?: AbortSignal;
}

interface OwnedInstance extends ToolInstance {
  /** Settles when `create` has ended, even after its timeout. Never rejects. */
  created: Promise<void>;
  isCreated: boolean;
}

/** True if a tool overrides calcReward. */
export function scoresConversations(tool: BaseTool): boolean {
  return tool.calcReward !== BaseTool.prototype.calcReward;
}

/** The tools of one conversation: one instance of each, created before the first turn and always released. */
export class EpisodeTools implements KeptTools {
  private readonly instances = new Map<string, OwnedInstance>();

  constructor(private readonly options: EpisodeToolsOptions) {}

  /** Creates an instance of each tool of the row. If that fails, the tool answers every call with the reason. */
  async create(): Promise<void> {
    const { tools, row } = this.options;
    await Promise.all(selectTools(tools, row).map((name) => this.createInstance(name)));
  }

  call(call: ParsedToolCall): Promise<ToolOutcome> {
    const { tools, agentData, multiTurn, images, signal } = this.options;
    return runToolCall(call, {
      tools,
      instances: this.instances,
      executeKwargs: (tool) => this.kwargsOf(tool)?.execute_kwargs ?? {},
      agentData,
      timeoutS: multiTurn.toolTimeoutS,
      seesImages: images !== undefined,
      signal,
    });
  }

  /** True if a tool scores the conversation. */
  get hasScore(): boolean {
    return [...this.instances.keys()].some((name) => scoresConversations(this.options.tools.get(name)!));
  }

  /** Sum of the tools' calcReward; null if no tool has one. @throws ToolError when one returns no number. */
  async score(): Promise<number | null> {
    let total: number | null = null;
    for (const [name, instance] of this.instances) {
      const tool = this.options.tools.get(name)!;
      if (!scoresConversations(tool)) continue;
      if (instance.problem !== undefined) throw makeScoreError(name, instance.problem);
      let reward: unknown;
      try {
        const work = () => tool.calcReward(instance.id, this.kwargsOf(name)?.calc_reward_kwargs ?? {});
        reward = await runWithDeadline(this.options.multiTurn.toolTimeoutS, undefined, work);
      } catch (cause) {
        this.options.addMetric("tool_reward_exception", 1);
        throw makeScoreError(name, describeError(cause), cause);
      }
      if (!isUsableNumber(reward)) {
        this.options.addMetric("tool_bad_reward", 1);
        throw makeScoreError(name, describeData(reward));
      }
      total = (total ?? 0) + reward;
    }
    return total;
  }

  /** @throws ToolError when a tool cannot say its state. */
  async save(): Promise<ToolStates> {
    const { tools, agentData } = this.options;
    const snapshots = new Map<string, unknown>();
    for (const [name, instance] of this.instances) {
      const tool = tools.get(name)!;
      if (instance.problem !== undefined || !tool.snapshot || !tool.restore) continue;
      const taken = await this.guardState(name, "snapshot", instance, () => tool.snapshot!(instance.id));
      snapshots.set(name, copyData(taken));
    }
    return { snapshots, agentData: copyData(agentData) };
  }

  /**
   * Brings the tools into states that tools of another conversation of the row had. @throws ToolError when one fails.
   */
  async restore({ snapshots, agentData }: ToolStates): Promise<void> {
    for (const [name, snapshot] of snapshots) {
      const tool = this.options.tools.get(name)!;
      const instance = this.instances.get(name)!;
      if (instance.problem !== undefined) throw makeStateError(name, "restore", instance.problem);
      await this.guardState(name, "restore", instance, () => tool.restore!(instance.id, copyData(snapshot)));
    }
    const own = this.options.agentData;
    for (const key of Object.keys(own)) delete own[key];
    Object.assign(own, copyData(agentData));
  }

  /** Releases each instance once, after its creation has ended. Calls that timed out get a moment to end first. */
  async release(): Promise<void> {
    await Promise.all(
      [...this.instances].map(async ([name, instance]) => {
        const release = async () => {
          await this.waitForLate(instance);
          await this.attemptRelease(() =>
            this.options.tools.get(name)!.release(instance.id, this.kwargsOf(name)?.release_kwargs ?? {}),
          );
        };
        // A creation that hangs must not delay the end of the conversation.
        if (instance.isCreated) await release();
        else void instance.created.then(release);
      }),
    );
  }

  private async createInstance(name: string): Promise<void> {
    const { tools, row, multiTurn, images, signal, addMetric } = this.options;
    const id = randomUUID();
    const createKwargs = this.kwargsOf(name)?.create_kwargs ?? {};
    const about = { groundTruth: row.groundTruth, row: row.extraInfo.row, ...(images ? { images } : {}) };
    const creating = Promise.resolve().then(() => tools.get(name)!.create(id, { createKwargs, ...about }));
    const instance: OwnedInstance = { id, isCreated: false, created: Promise.resolve() };
    const settle = () => {
      instance.isCreated = true;
    };
    instance.created = creating.then((created) => {
      instance.id = readInstanceId(created) ?? id;
      settle();
    }, settle);
    this.instances.set(name, instance);
    try {
      await runWithDeadline(multiTurn.toolTimeoutS, signal, () => creating);
    } catch (error) {
      instance.problem = describeError(error);
      addMetric("tool_create_exception", 1);
    }
    // The tool's own id is set one microtask after `creating` settles.
    if (instance.problem === undefined) await instance.created;
  }

  /** Waits until calls that timed out have ended: they may still change the state. */
  private async guardState<T>(
    name: string,
    method: "snapshot" | "restore",
    { late }: OwnedInstance,
    work: () => Promise<T>,
  ): Promise<T> {
    const { multiTurn, signal } = this.options;
    try {
      return await runWithDeadline(multiTurn.toolTimeoutS, signal, async () => {
        await late;
        return work();
      });
    } catch (cause) {
      throw makeStateError(name, method, describeError(cause), cause);
    }
  }

  /**
   * Waits briefly for calls whose signal has aborted; a tool that ignores its signal must not delay the end of the
   * conversation.
   */
  private async waitForLate({ late }: OwnedInstance): Promise<void> {
    if (late === undefined) return;
    const seconds = Math.min(longestGraceS, this.options.multiTurn.toolTimeoutS);
    await runWithDeadline(seconds, undefined, () => late).catch(() => undefined);
  }

  /** Counts an exception or a timeout as a metric. Aborts do not reach the release: it has to complete. */
  private async attemptRelease(work: () => Promise<void>): Promise<void> {
    try {
      await runWithDeadline(this.options.multiTurn.toolTimeoutS, undefined, work);
    } catch {
      this.options.addMetric("tool_release_exception", 1);
    }
  }

  private kwargsOf(name: string) {
    return this.options.row.extraInfo.tools_kwargs?.[name];
  }
}

/** The id that a tool chose for its instance, if any. Never throws. */
function readInstanceId(created: unknown): string | undefined {
  try {
    const id = (created as { instanceId?: unknown } | null | undefined)?.instanceId;
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}

function makeStateError(name: string, method: "snapshot" | "restore", received: string, cause?: unknown): ToolError {
  return new ToolError("failed", {
    code: "tool/no-state",
    subject: `${method} of tool "${name}"`,
    expected: method === "snapshot" ? "data, in time" : "the state of the snapshot, in time",
    received: received.slice(0, 500),
    cause,
  });
}

function makeScoreError(name: string, received: string, cause?: unknown): ToolError {
  return new ToolError("gave no score", {
    code: "tool/no-score",
    subject: `calcReward of tool "${name}"`,
    expected: `${usableNumber}, in time`,
    received: received.slice(0, 500),
    cause,
  });
}
