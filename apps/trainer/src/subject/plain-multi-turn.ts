import { defaultMultiTurn, type MultiTurnOptions } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeModel } from "@cria/trainer/internal";

/** For a model that no config speaks of: the format of calls is what its own template writes. */
export function makePlainMultiTurn(tokenizer: DeltaTokenizer): MultiTurnOptions {
  const { format } = probeModel(tokenizer);
  return {
    ...defaultMultiTurn,
    format: format ?? defaultMultiTurn.format,
    maxParallelCalls: 8,
    maxToolResponseLength: 1024,
  };
}
