import { ConfigError, type PolicyEngine } from "@cria/core";
import type { ValueModel } from "@cria/engine";
import type { RewardRequest } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { readMessages } from "./judge-prompt.js";
import { JudgementError, type ModelScore, type RewardModel } from "./reward-model.js";

/** What a GGUF calls a classifier's matrix. */
const HEAD = "cls.output.weight";

export interface ScoreHeadParts {
  /** The backbone; its value head is still zero. */
  backbone: Pick<ValueModel, "values" | "listTensors" | "readTensor" | "writeTensor" | "dispose">;
  /** The same file once more, for its vocabulary. */
  vocabulary: Pick<PolicyEngine, "dispose">;
  tokenizer: DeltaTokenizer;
}

/**
 * A reward model with a trained head of one output, w · norm(h) of the conversation's last token, unbounded (Ouyang et al.
 * 2022, arXiv:2203.02155). Of the architectures that Cria evaluates, llama.cpp lets only qwen3 files carry such a head.
 */
export class ScoreHead implements RewardModel {
  private constructor(
    private readonly parts: ScoreHeadParts,
    private readonly maxModelLen: number,
  ) {}

  /**
   * Takes over the parts, and frees them when it fails.
   * @throws ConfigError when the file has no head, or one of several outputs.
   */
  static async open(parts: ScoreHeadParts, maxModelLen: number, path: string): Promise<ScoreHead> {
    const head = new ScoreHead(parts, maxModelLen);
    try {
      const { backbone } = parts;
      const tensor = backbone.listTensors().find(({ name }) => name === HEAD);
      const outputs = tensor ? (tensor.shape[1] ?? 1) : 0;
      if (outputs !== 1) {
        throw new ConfigError("has no head that scores", {
          code: "config/no-score-head",
          subject: path,
          expected: `${HEAD} with one output`,
          received: tensor ? `${outputs} outputs` : "no such tensor",
          remedy: "use type yes_no or judge, which any chat model can do",
        });
      }
      await backbone.writeTensor("value_head.weight", await backbone.readTensor(HEAD));
      return head;
    } catch (error) {
      await head.dispose();
      throw error;
    }
  }

  async score({ extraInfo }: RewardRequest, signal: AbortSignal): Promise<ModelScore> {
    const ids = this.parts.tokenizer.encodeWhole(readMessages(extraInfo));
    if (ids.length > this.maxModelLen)
      throw new JudgementError(`a conversation of ${ids.length} tokens, where max_model_len is ${this.maxModelLen}`);
    // A value is that of the state before its token: one more token, whichever, asks for the state after the last.
    const sequence = { tokenIds: [...ids, ids[0]!], from: ids.length };
    const [values] = await this.parts.backbone.values([sequence], { signal });
    return { score: values![ids.length]! };
  }

  async dispose(): Promise<void> {
    await Promise.all([this.parts.backbone.dispose(), this.parts.vocabulary.dispose()]);
  }
}
