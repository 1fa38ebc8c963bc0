import { ConfigError } from "@cria/core";
import { judgeOne } from "./judge-one.js";
import { computeOverlongPenalty } from "./overlong-buffer.js";
import type { Judgement, RewardManager, RewardManagerOptions, RewardRequest } from "./reward-manager.js";

/** The naive manager plus a penalty for responses that reach into the overlong buffer (DAPO, arXiv:2503.14476). */
export class DapoRewardManager implements RewardManager {
  readonly granularity = "sample";

  /** @throws ConfigError when the buffer is longer than the longest response. */
  constructor(private readonly options: RewardManagerOptions) {
    const { overlongBuffer, responseLength = 0 } = options;
    if (!overlongBuffer || (overlongBuffer.length > 0 && overlongBuffer.length <= responseLength)) return;
    throw new ConfigError("does not fit into a response", {
      code: "config/bad-value",
      subject: "reward_model.overlong_buffer.len",
      expected: `1 to ${responseLength} tokens (the response length)`,
      received: String(overlongBuffer.length),
    });
  }

  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]> {
    return Promise.all(
      requests.map(async (request) => {
        const judgement = await judgeOne(request, this.options, signal);
        const { overlongBuffer, responseLength = 0 } = this.options;
        if (!overlongBuffer || "error" in judgement) return judgement;
        const penalty = computeOverlongPenalty(request.responseLength, responseLength, overlongBuffer);
        const logged = overlongBuffer.log ? { overlong_reward: penalty, overlong: penalty < 0 ? 1 : 0 } : {};
        // Accuracy is that of the answer alone: `success` must not depend on the length.
        const acc = judgement.extra.acc ?? (judgement.score > 0 ? 1 : 0);
        return {
          score: judgement.score + penalty,
          extra: { ...judgement.extra, acc, ...logged },
          parts: [
            ...(judgement.parts ?? []),
            { name: "overlong", value: penalty, weight: 1, by: "reward_model.overlong_buffer" },
          ],
        };
      }),
    );
  }
}
