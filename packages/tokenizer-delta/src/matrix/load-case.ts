import { ChatTemplate } from "../chat-template.js";
import { DeltaTokenizer, type ModelTokenizerOptions } from "../delta-tokenizer.js";
import { AddedTokens, BundledVocabulary, readBundledTemplate } from "../testing/index.js";
import type { TemplateCase } from "./templates.js";

const vocabularies = new Map<string, Promise<BundledVocabulary>>();

/** The delta tokenizer of a case, or of another template if given; each vocabulary is loaded once. */
export async function loadCase(
  example: TemplateCase,
  source = readBundledTemplate(example.template),
  options: ModelTokenizerOptions = {},
): Promise<DeltaTokenizer> {
  const loading = vocabularies.get(example.vocabulary) ?? BundledVocabulary.load(example.vocabulary);
  vocabularies.set(example.vocabulary, loading);
  const vocabulary = await loading;
  const tokens = new AddedTokens(vocabulary, example.added ?? []);
  const template = new ChatTemplate(source, {
    bos_token: example.bos ?? "",
    eos_token: example.eos ?? "",
  });
  return new DeltaTokenizer(template, tokens, {
    endOfTurnTokens: example.ends.map((text) => tokens.tokenize(text)[0]!),
    bosToken: example.own ? vocabulary.bosToken : null,
    kwargs: example.kwargs,
    ...options,
  });
}

export async function disposeVocabularies(): Promise<void> {
  for (const vocabulary of vocabularies.values()) await (await vocabulary).dispose();
  vocabularies.clear();
}
