import { type ChatMessage, hashSeed, type PolicyEngine } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";
import type { RewardRequest } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ChatEndpoint } from "./chat-endpoint.js";
import type { VerdictOptions } from "./generative-judge.js";
import type { GroupPrompt } from "./group-prompt.js";
import { type GroupFormat, makeGroupGrammar, parseGroup } from "./parse-group.js";
import { type GroupRewardModel, JudgementError, type ModelScore } from "./reward-model.js";

/** Generates verdicts on groups, and measures prompts. */
export interface GroupWriter {
  /** @param grammar grammar of the verdict; ignored by writers that do not support grammars. */
  write(messages: readonly ChatMessage[], grammar: string, attempt: number, signal: AbortSignal): Promise<string>;
  countTokens(messages: readonly ChatMessage[]): number;
}

export interface GroupJudgeOptions extends GroupFormat {
  /** Maximum number of tokens of a prompt; longer ones are shortened, message by message. */
  maxGroupTokens: number;
}

/**
 * A model that sees all attempts at a task in one prompt and compares them: it gives relative scores, as estimators
 * that compare a group need (after RULER of OpenPipe's ART, 2025; ranks as in Zhu et al. 2023, arXiv:2301.11270).
 * The common beginning of the attempts appears once. Each prompt has its own seeded order of attempts, because
 * judges have a position bias (Zheng et al. 2023, arXiv:2306.05685).
 */
export class GroupJudge implements GroupRewardModel {
  constructor(
    private readonly writer: GroupWriter,
    private readonly prompt: GroupPrompt,
    private readonly options: GroupJudgeOptions,
    readonly dispose?: () => Promise<void>,
  ) {}

  /** An unreadable verdict is requested once more, in another order. */
  async scoreGroup(group: readonly RewardRequest[], signal: AbortSignal): Promise<ModelScore[]> {
    try {
      return await this.ask(group, 0, signal);
    } catch (error) {
      if (!(error instanceof JudgementError) || error.verdict === undefined || signal.aborted) throw error;
      return this.ask(group, 1, signal);
    }
  }

  private async ask(group: readonly RewardRequest[], attempt: number, signal: AbortSignal): Promise<ModelScore[]> {
    const { maxGroupTokens } = this.options;
    const order = shuffleIndices(group.length, hashSeed("group_rank", group[0]!.uid, group[0]!.order, attempt));
    const shown = [...order].map((i) => group[i]!);
    const messages = this.prompt.render(shown, (each) => this.writer.countTokens(each) <= maxGroupTokens);
    if (messages === null) {
      throw new JudgementError(`is longer than max_group_tokens (${maxGroupTokens}), however its messages are cut`, {
        code: "reward/too-long",
        subject: `group of ${group.length}`,
      });
    }
    const verdict = await this.writer.write(messages, makeGroupGrammar(group.length, this.options), attempt, signal);
    // A truncated text is no verdict.
    signal.throwIfAborted();
    const scores = parseGroup(verdict, group.length, this.options);
    const result = new Array<ModelScore>(group.length);
    // The verdict names attempts by ids, which depend on the order.
    order.forEach((i, place) => {
      result[i] = { score: scores[place]!, verdict: `as ${place + 1} of ${group.length}: ${verdict}` };
    });
    return result;
  }
}

/** Generates verdicts with a model in this process, constrained by a grammar. */
export function writeGroupsWithEngine(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  { maxTokens, temperature }: VerdictOptions,
): GroupWriter {
  return {
    countTokens: (messages) => tokenizer.encodePrompt(messages).length,
    write: async (messages, grammar, attempt, signal) => {
      const sequence = engine.createSequence();
      try {
        const options = { maxTokens, temperature, seed: attempt, grammar, signal };
        return (await sequence.generate(tokenizer.encodePrompt(messages), options)).text;
      } finally {
        sequence.dispose();
      }
    },
  };
}

/** Minimum number of characters per token: a server's tokenizer is unknown. */
const CHARS_PER_TOKEN = 3;

/** Generates verdicts with a server. */
export function writeGroupsWithEndpoint(endpoint: ChatEndpoint, options: VerdictOptions): GroupWriter {
  return {
    countTokens: (messages) =>
      Math.ceil(messages.reduce((sum, { content }) => sum + content.length, 0) / CHARS_PER_TOKEN),
    write: async (messages, _grammar, _attempt, signal) =>
      (await endpoint.complete(messages, { ...options, signal })).text,
  };
}
