import { basename } from "node:path";
import { type CriaProvider, createProvider } from "@cria/ai-sdk";
import { type ChecksOf, checkOptions, isText, optionChecks, refuseOption } from "@cria/core/internal";
import type { CreateCriaOptions } from "./create-cria-options.js";

const { any, text, count } = optionChecks;

const criaChecks: ChecksOf<Required<CreateCriaOptions>> = {
  model: [isText, "a GGUF file, or an address: hf:<owner>/<model>:<type>"],
  adapter: text,
  mmproj: text,
  name: text,
  format: any,
  seed: optionChecks.whole,
  contextSize: count,
  maxSequences: count,
  device: any,
  threads: count,
  deterministic: optionChecks.flag,
  sampling: optionChecks.object,
  limits: optionChecks.object,
  images: any,
  stop: any,
  mostTokens: count,
  onWarning: optionChecks.function,
};

export interface Cria extends CriaProvider {
  /** Answers as `cria serve` would over HTTP, for clients that take a `fetch`, such as OpenAI's. */
  readonly fetch: typeof fetch;
}

/**
 * A trained policy for production, as a provider of the AI SDK: `cria()` is its model. It loads with the first request
 * (`cria.load()`: now) and computes as many conversations at once as `maxSequences` says, 8 by default.
 *
 * Requests fail with EngineError or HubError when the model cannot be loaded; a later one tries again.
 */
export function createCria(options: CreateCriaOptions): Cria {
  checkOptions("createCria", options, criaChecks);
  if (options.model === undefined)
    throw refuseOption("createCria: model", "is missing", criaChecks.model[1], undefined);
  const { name = basename(options.model).replace(/\.gguf$/, "") } = options;
  let fetcher: typeof fetch | null = null;
  const provider = createProvider({
    name,
    open: async () => {
      const { createFetch, openPool } = await import("./open-pool.js");
      const opened = await openPool(name, options);
      fetcher = createFetch(opened.chat);
      return opened;
    },
  });
  return Object.assign(provider, {
    fetch: async (...request: Parameters<typeof fetch>) => {
      await provider.load();
      return fetcher!(...request);
    },
  });
}
