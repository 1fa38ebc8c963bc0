import { basename } from "node:path";
import { type CriaProvider, createProvider } from "@cria/ai-sdk";
import { type ChecksOf, checkOptions, isText, optionChecks, refuseOption } from "@cria/core/internal";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import { resolveModel } from "@cria/hub";
import { ChatPool, type ChatPoolOptions, defaultMultiTurn } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeTemplate } from "@cria/trainer/internal";

export interface CreateCriaOptions
  extends Pick<LoadModelOptions, "contextSize" | "maxSequences" | "device" | "threads" | "deterministic">,
    Pick<ChatPoolOptions, "sampling" | "limits" | "images" | "stop" | "mostTokens" | "onWarning"> {
  /** A GGUF file, or an address: hf:<owner>/<model>:<quantisation>. */
  model: string;
  /** A LoRA adapter on the model, also an address. */
  adapter?: string;
  /** The projector with which it sees images, also an address. Default: it reads only text. */
  mmproj?: string;
  /** Name of the model, for the AI SDK; default: that of its file, without `.gguf`. */
  name?: string;
  /** The format of the model's tool calls: a format, its name, or a parser. Default: the chat template's. */
  format?: ChatPoolOptions["format"];
  /** With a seed the same requests in the same order give the same answers. Default: random. */
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
      const opened = await openPool(name, options);
      const { createFetch } = await import("@cria/serve");
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
    // With an adapter the cache is as in training, so that the numbers are equal too.
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
      format: options.format ?? findFormat(engine, tokenizer),
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

function findFormat(engine: Awaited<ReturnType<typeof loadModel>>, tokenizer: DeltaTokenizer) {
  const ends = engine.info.endOfGenerationTokens.map((token) => engine.detokenize([token]));
  return probeTemplate((...given) => tokenizer.render(...given), ends).format ?? defaultMultiTurn.format;
}
