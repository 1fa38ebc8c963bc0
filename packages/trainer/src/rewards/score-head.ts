import { ConfigError, type PolicyEngine } from "@cria/core";
import type { ValueModel } from "@cria/engine/internal";
import type { RewardRequest } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { nameImages } from "./judge-prompt.js";
import { readSafetensorsTensor } from "./read-safetensors.js";
import { JudgementError, type ModelScore, type RewardModel } from "./reward-model.js";

/** Name of the matrix in transformers' sequence classifiers of decoder models. */
const HEAD = "score.weight";

export interface ScoreHeadParts {
  /** The backbone; its value head is zero at first. */
  backbone: Pick<ValueModel, "info" | "values" | "writeTensor" | "dispose">;
  /** The same file, loaded again for its vocabulary. */
  vocabulary: Pick<PolicyEngine, "dispose">;
  tokenizer: DeltaTokenizer;
}

/**
 * A reward model with a trained head: w · norm(h) of the conversation's last token, unbounded (Ouyang et al. 2022,
 * arXiv:2203.02155). The backbone is a GGUF. The head is read from the safetensors file of the original model,
 * because llama.cpp loads a decoder's `cls.output.weight` only for qwen3's rerankers, and returns the softmax of its
 * outputs, which is 1 for a single output.
 */
export class ScoreHead implements RewardModel {
  private constructor(
    private readonly parts: ScoreHeadParts,
    private readonly maxModelLen: number,
  ) {}

  /**
   * Takes ownership of the parts, and frees them on failure.
   * @throws ConfigError when the file has no head, or one with several outputs or for another backbone.
   */
  static async open(parts: ScoreHeadParts, headPath: string, maxModelLen: number): Promise<ScoreHead> {
    const head = new ScoreHead(parts, maxModelLen);
    try {
      const { shape, data } = await readSafetensorsTensor(headPath, HEAD);
      const { embeddingSize } = parts.backbone.info;
      if (shape.join() !== `1,${embeddingSize}`) {
        throw new ConfigError("is not the head of a reward model on this backbone", {
          code: "config/bad-score-head",
          subject: `${headPath}: ${HEAD}`,
          expected: `the shape [1, ${embeddingSize}]`,
          received: `[${shape.join(", ")}]`,
        });
      }
      await parts.backbone.writeTensor("value_head.weight", data);
      return head;
    } catch (error) {
      await head.dispose();
      throw error;
    }
  }

  async score({ extraInfo }: RewardRequest, signal: AbortSignal): Promise<ModelScore> {
    const ids = this.parts.tokenizer.encodeWhole(nameImages(extraInfo.messages));
    if (ids.length > this.maxModelLen)
      throw new JudgementError(`has ${ids.length} tokens, where max_model_len is ${this.maxModelLen}`, {
        code: "reward/too-long",
        subject: "conversation",
      });
    // A value belongs to the state before its token: one arbitrary further token gives the state after the last.
    const sequence = { tokenIds: [...ids, ids[0]!], from: ids.length };
    const [values] = await this.parts.backbone.values([sequence], { signal });
    return { score: values![ids.length]! };
  }

  async dispose(): Promise<void> {
    await Promise.all([this.parts.backbone.dispose(), this.parts.vocabulary.dispose()]);
  }
}
