import type { MultiTurnOptions } from "@cria/rollout";
import { defaultMultiTurn } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeModel } from "@cria/trainer/internal";

/** Settings for a model without a config: the tool-call format is the one that its template prints. */
export function makePlainMultiTurn(tokenizer: DeltaTokenizer): MultiTurnOptions {
  const { format } = probeModel(tokenizer);
  return {
    ...defaultMultiTurn,
    format: format ?? defaultMultiTurn.format,
    maxParallelCalls: 8,
    maxToolResponseLength: 1024,
  };
}
