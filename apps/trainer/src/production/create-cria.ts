import { basename } from "node:path";
import { type CriaProvider, createProvider } from "@cria/ai-sdk";
import { type ChecksOf, checkOptions, isText, optionChecks, refuseOption } from "@cria/core";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import { resolveModel } from "@cria/hub";
import { ChatPool, type ChatPoolOptions, defaultMultiTurn } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeModel } from "@cria/trainer";

export interface CreateCriaOptions
  extends Pick<LoadModelOptions, "contextSize" | "maxSequences" | "device" | "threads" | "deterministic">,
    Pick<ChatPoolOptions, "sampling" | "limits" | "images" | "stop" | "mostTokens" | "onWarning"> {
  /** A GGUF file, or an address: hf:<owner>/<model>:<quantisation>. */
  model: string;
  /** A LoRA adapter on the model, also an address. */
  adapter?: string;
  /** The projector with which it sees images, also an address. Default: it reads text alone. */
  mmproj?: string;
  /** Name of the model, for the AI SDK; default: that of its file, without `.gguf`. */
  name?: string;
  /** How the model writes tool calls: a format, its name, or a parser. Default: as its template prints them. */
  format?: ChatPoolOptions["format"];
  /** With it the same requests in the same order give the same answers. Default: drawn. */
  seed?: number;
}

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

async function openPool(name: string, options: CreateCriaOptions) {
  const { model, adapter, mmproj, contextSize, maxSequences, device, threads, deterministic, ...chat } = options;
  const engine = await loadModel({
    path: model,
    // With an adapter the cache is as in training, so that the numbers are too.
    ...(adapter === undefined ? {} : { lora: { path: await resolveModel(adapter) }, kvType: "f32" }),
    ...(mmproj === undefined ? {} : { mmproj }),
    trainable: "none",
    contextSize,
    maxSequences,
    device,
    threads,
    deterministic,
  });
  try {
    const tokenizer = DeltaTokenizer.forModel(engine);
    const pool = new ChatPool({
      ...chat,
      engine,
      tokenizer,
      name,
      format: options.format ?? findFormat(tokenizer),
      seed: options.seed ?? Math.floor(Math.random() * 2 ** 31),
    });
    const dispose = async () => {
      pool.dispose();
      await engine.dispose();
    };
    return { chat: pool, dispose };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

function findFormat(tokenizer: DeltaTokenizer) {
  return probeModel(tokenizer).format ?? defaultMultiTurn.format;
}
