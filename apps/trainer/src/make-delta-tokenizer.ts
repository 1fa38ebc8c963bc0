import { ConfigError, type PolicyEngine } from "@cria/core";
import { ChatTemplate, DeltaTokenizer } from "@cria/tokenizer-delta";

/** The delta tokenizer of a model, by the template in its GGUF. @throws ConfigError when it has none. */
export function makeDeltaTokenizer(model: PolicyEngine, kwargs?: Record<string, unknown>): DeltaTokenizer {
  if (model.chatTemplate === null) {
    throw new ConfigError("has no chat template", {
      code: "config/no-chat-template",
      subject: model.info.path,
      expected: "the key tokenizer.chat_template in the GGUF",
      remedy: "use an instruction-tuned model, or add a template to the file",
    });
  }
  const text = (token: number | null) => (token === null ? undefined : model.detokenize([token]));
  const template = new ChatTemplate(model.chatTemplate, {
    bos_token: text(model.info.bosToken),
    eos_token: text(model.info.eosToken),
  });
  return new DeltaTokenizer(template, model, {
    bosToken: model.info.addBos ? model.info.bosToken : null,
    endOfTurnTokens: model.info.endOfGenerationTokens,
    kwargs,
  });
}
