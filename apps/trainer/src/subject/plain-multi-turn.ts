import type { LlamaModel } from "@cria/engine";
import { defaultMultiTurn, type MultiTurnOptions } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeTemplate } from "@cria/trainer/internal";

/** Settings for a model without a config: the format of calls is the chat template's. */
export function makePlainMultiTurn(engine: LlamaModel, tokenizer: DeltaTokenizer): MultiTurnOptions {
  const ends = engine.info.endOfGenerationTokens.map((token) => engine.detokenize([token]));
  const { format } = probeTemplate((...given) => tokenizer.render(...given), ends);
  return {
    ...defaultMultiTurn,
    format: format ?? defaultMultiTurn.format,
    maxParallelCalls: 8,
    maxToolResponseLength: 1024,
  };
}
