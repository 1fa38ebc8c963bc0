import { type LanguageModelV3, NoSuchModelError, type ProviderV3 } from "@ai-sdk/provider";
import { ConfigError } from "@cria/core";
import type { ChatModel } from "@cria/rollout";
import { languageModel } from "./language-model.js";

/** A loaded policy, and the function that frees it. */
export interface OpenedChat {
  chat: ChatModel;
  dispose(): Promise<void> | void;
}

export interface ProviderOptions {
  /** The name of the only model. */
  name: string;
  /** Loads the policy. Called with the first request, and again after a failure. */
  open: () => Promise<OpenedChat>;
}

/** A provider of the AI SDK with one model. */
export interface CriaProvider extends ProviderV3 {
  /** @throws NoSuchModelError for another name than the model's. */
  (modelId?: string): LanguageModelV3;
  languageModel(modelId?: string): LanguageModelV3;
  /** The model without the AI SDK: `complete` answers a conversation. */
  readonly chat: ChatModel;
  /**
   * Loads the policy now rather than with the first request.
   * @throws the errors of `open`.
   */
  load(): Promise<void>;
  /** Ends all requests and frees the policy; further requests are refused. */
  dispose(): Promise<void>;
}

/** Makes a provider that loads its policy when first needed. */
export function createProvider({ name, open }: ProviderOptions): CriaProvider {
  let opening: Promise<OpenedChat> | null = null;
  let isDisposed = false;
  const load = (): Promise<OpenedChat> => {
    if (isDisposed) return Promise.reject(makeDisposed(name));
    if (opening) return opening;
    const started = open();
    opening = started;
    started.catch(() => {
      opening = null;
    });
    return started;
  };
  const chat: ChatModel = {
    name,
    complete: async (request, options) => {
      const opened = await load();
      if (isDisposed) throw makeDisposed(name);
      return opened.chat.complete(request, options);
    },
  };
  const model = languageModel(chat);
  const find = (modelId = name): LanguageModelV3 => {
    if (modelId === name) return model;
    throw new NoSuchModelError({ modelId, modelType: "languageModel", message: describeMissing(modelId, name) });
  };
  const refuse = (modelType: "embeddingModel" | "imageModel") => (modelId: string) => {
    throw new NoSuchModelError({ modelId, modelType });
  };
  return Object.assign(find, {
    specificationVersion: "v3" as const,
    languageModel: find,
    embeddingModel: refuse("embeddingModel"),
    imageModel: refuse("imageModel"),
    chat,
    load: async () => void (await load()),
    dispose: async () => {
      isDisposed = true;
      const opened = await opening?.catch(() => null);
      opening = null;
      await opened?.dispose();
    },
  });
}

function describeMissing(modelId: string, name: string): string {
  return `There is no model "${modelId}": this provider has "${name}".`;
}

function makeDisposed(name: string): ConfigError {
  return new ConfigError("was disposed", {
    code: "config/disposed",
    subject: `provider of ${name}`,
    expected: "a provider in use",
    remedy: "make another one with createCria",
  });
}
