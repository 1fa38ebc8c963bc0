import { randomUUID } from "node:crypto";
import type { ChatMessage, FinishReason, GenerateResult, ToolSchema } from "@cria/core";
import { checkTokenization } from "@cria/tokenizer-delta";
import { getToolParser, type ParsedToolCall } from "@cria/tools";
import {
  type AgentLoop,
  type AgentLoopContext,
  type AgentLoopOutput,
  registerAgentLoop,
  type SamplingParams,
} from "./agent-loop.js";
import type { DatasetRow } from "./dataset-row.js";
import { hashSeed } from "./hash-seed.js";
import { runToolCall, type ToolOutcome } from "./run-tool-call.js";
import { TrajectoryBuilder } from "./trajectory-builder.js";
import { truncateText } from "./truncate-text.js";

export type AgentState = "pending" | "generating" | "processing_tools" | "interacting" | "terminated";

/** Tools that a row's samples may see: all, or those that its tools_kwargs name. */
export function selectTools(context: Pick<AgentLoopContext, "tools">, row: DatasetRow): string[] {
  const named = Object.keys(row.extraInfo.tools_kwargs ?? {});
  return [...context.tools.keys()].filter((name) => !row.extraInfo.need_tools_kwargs || named.includes(name));
}

export function listToolSchemas(context: Pick<AgentLoopContext, "tools">, row: DatasetRow): ToolSchema[] {
  return selectTools(context, row).map((name) => context.tools.get(name)!.schema);
}

/** The model speaks, its tool calls run, their answers follow, and so on until it answers without a call. */
export class ToolAgentLoop implements AgentLoop {
  private readonly transitions: { state: AgentState; at: number }[] = [];
  private readonly instanceIds = new Map<string, string>();
  private readonly agentData: Record<string, unknown> = {};
  private readonly metrics: Record<string, number> = { tool_calls: 0, tool_errors: 0, generate_s: 0, tool_s: 0 };
  private readonly toolRewards: AgentLoopOutput["toolRewards"] = [];
  private readonly builder: TrajectoryBuilder;
  private assistantTurns = 0;
  private userTurns = 0;

  constructor(private readonly context: AgentLoopContext) {
    this.builder = new TrajectoryBuilder(context.responseLength);
  }

  async run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput> {
    this.enter("pending");
    const messages: ChatMessage[] = [...row.prompt];
    const schemas = listToolSchemas(this.context, row);
    try {
      await this.createInstances(row);
      const finishReason = await this.converse(sampling, row, messages, schemas);
      this.enter("terminated");
      this.checkTokens(messages, schemas);
      const toolScore = await this.calculateToolScore(row);
      return {
        promptIds: this.context.promptIds,
        ...this.builder.build(),
        turnScores: [],
        toolRewards: this.toolRewards,
        toolScore,
        numTurns: this.assistantTurns + this.userTurns + 1,
        metrics: this.metrics,
        messages,
        finishReason,
        extraFields: { transitions: this.transitions },
      };
    } finally {
      await this.releaseInstances(row);
    }
  }

  private async converse(
    sampling: SamplingParams,
    row: DatasetRow,
    messages: ChatMessage[],
    schemas: ToolSchema[],
  ): Promise<FinishReason> {
    const { multiTurn, tokenizer, sequence, signal } = this.context;
    const parse = getToolParser(multiTurn.format);
    let delta = new Int32Array(0);
    for (;;) {
      if (this.builder.remaining <= 0) return "length";
      this.enter("generating");
      const started = performance.now();
      const turn = await sequence.generate(delta, {
        maxTokens: this.builder.remaining,
        temperature: sampling.temperature,
        topP: sampling.topP,
        topK: sampling.topK,
        seed: hashSeed(sampling.seed, this.assistantTurns),
        signal,
      });
      this.metrics.generate_s! += (performance.now() - started) / 1000;
      this.countTokens(turn);
      this.builder.addSampled(turn);
      this.assistantTurns++;
      messages.push({ role: "assistant", content: turn.text });
      if (turn.finishReason === "aborted") return "aborted";
      if (turn.finishReason === "length") return "length";

      const calls = parse && schemas.length > 0 ? parse(turn.text).calls : [];
      if (calls.length === 0) return "stop";
      if (multiTurn.maxAssistantTurns !== null && this.assistantTurns >= multiTurn.maxAssistantTurns)
        return "tool_calls";
      if (multiTurn.maxUserTurns !== null && this.userTurns >= multiTurn.maxUserTurns) return "tool_calls";

      this.enter("processing_tools");
      const answers = await this.answerCalls(calls, row);
      const observed = tokenizer.encodeDelta(answers, true);
      // One token more, or nothing could be said in reply.
      if (observed.length + 1 > this.builder.remaining) return "length";
      this.builder.addObserved(observed);
      messages.push(...answers);
      this.userTurns++;
      delta = observed as Int32Array<ArrayBuffer>;
    }
  }

  private async answerCalls(calls: readonly ParsedToolCall[], row: DatasetRow): Promise<ChatMessage[]> {
    const { multiTurn, engine } = this.context;
    const started = performance.now();
    const outcomes = await Promise.all(
      calls.map((call, i): Promise<ToolOutcome> | ToolOutcome => {
        this.metrics.tool_calls!++;
        if (i >= multiTurn.maxParallelCalls) {
          return {
            text: `error: only ${multiTurn.maxParallelCalls} calls at a time; this one was not run`,
            reward: 0,
            metrics: { too_many_calls: 1 },
          };
        }
        return runToolCall(call, {
          tools: this.context.tools,
          instanceIds: this.instanceIds,
          executeKwargs: (tool) => row.extraInfo.tools_kwargs?.[tool]?.execute_kwargs ?? {},
          agentData: this.agentData,
          timeoutS: multiTurn.toolTimeoutS,
          signal: this.context.signal,
        });
      }),
    );
    this.metrics.tool_s! += (performance.now() - started) / 1000;
    const tokenIndex = this.builder.lastSampled;
    return outcomes.map((outcome, i) => {
      if (outcome.failure) {
        this.metrics.tool_errors!++;
        this.addMetric(`tool_${outcome.failure}`, 1);
      }
      for (const [name, value] of Object.entries(outcome.metrics)) this.addMetric(name, value);
      if (outcome.reward !== 0) this.toolRewards.push({ value: outcome.reward, tokenIndex });
      const { text, truncated } = truncateText(
        outcome.text,
        {
          maxTokens: multiTurn.maxToolResponseLength,
          maxChars: multiTurn.maxToolResponseChars,
          side: multiTurn.toolResponseTruncateSide,
        },
        engine,
      );
      if (truncated) this.addMetric("tool_truncated", 1);
      return { role: "tool", name: calls[i]!.name, content: text };
    });
  }

  private async createInstances(row: DatasetRow): Promise<void> {
    for (const name of selectTools(this.context, row)) {
      const id = randomUUID();
      this.instanceIds.set(name, id);
      await this.context.tools
        .get(name)!
        .create(id, { createKwargs: row.extraInfo.tools_kwargs?.[name]?.create_kwargs ?? {} });
    }
  }

  private async calculateToolScore(row: DatasetRow): Promise<number | null> {
    let total: number | null = null;
    for (const [name, id] of this.instanceIds) {
      try {
        total =
          (total ?? 0) +
          (await this.context.tools
            .get(name)!
            .calcReward(id, row.extraInfo.tools_kwargs?.[name]?.calc_reward_kwargs ?? {}));
      } catch {
        this.addMetric("tool_reward_exception", 1);
      }
    }
    return total;
  }

  private async releaseInstances(row: DatasetRow): Promise<void> {
    for (const [name, id] of this.instanceIds) {
      try {
        await this.context.tools.get(name)!.release(id, row.extraInfo.tools_kwargs?.[name]?.release_kwargs ?? {});
      } catch {
        this.addMetric("tool_release_exception", 1);
      }
    }
  }

  private checkTokens(messages: readonly ChatMessage[], schemas: ToolSchema[]): void {
    const mode = this.context.multiTurn.tokenizationSanityCheckMode;
    if (mode === "disable") return;
    const { tokenizer, promptIds, engine } = this.context;
    const { responseIds, responseMask } = this.builder.build();
    try {
      // What the template prints after the last turn was never sampled: compare up to there.
      const whole = tokenizer.template.render(messages, { tools: schemas });
      const ids = [...promptIds, ...responseIds];
      const text = engine.detokenize(ids);
      const ended = responseMask.length > 0 && whole.startsWith(text) ? text : whole;
      const check = checkTokenization(ids, ended, engine, mode);
      if (check.kind === "drift") this.addMetric("tokenization_drift", 1);
      if (check.kind === "mismatch") this.addMetric("tokenization_mismatch", 1);
    } catch {
      this.addMetric("tokenization_unchecked", 1);
    }
  }

  private countTokens(turn: GenerateResult): void {
    this.addMetric("prefill_tokens", turn.stats.prefillTokens);
    this.addMetric("reused_tokens", turn.stats.reusedTokens);
    this.addMetric("decode_tokens", turn.stats.decodeTokens);
  }

  private addMetric(name: string, value: number): void {
    this.metrics[name] = (this.metrics[name] ?? 0) + value;
  }

  private enter(state: AgentState): void {
    this.transitions.push({ state, at: performance.now() });
  }
}

registerAgentLoop("tool_agent", (context) => new ToolAgentLoop(context));
// One assistant turn, and no tools to wait for.
registerAgentLoop(
  "single_turn_agent",
  (context) =>
    new ToolAgentLoop({ ...context, tools: new Map(), multiTurn: { ...context.multiTurn, maxAssistantTurns: 1 } }),
);
