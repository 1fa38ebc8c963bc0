// The implementation behind `createCria`, loaded with its first request.

import { loadModel } from "@cria/engine";
import { resolveModel } from "@cria/hub";
import { ChatPool } from "@cria/rollout";
import { defaultMultiTurn } from "@cria/rollout/internal";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { probeModel } from "@cria/trainer/internal";
import type { CreateCriaOptions } from "./create-cria-options.js";

export { createFetch } from "@cria/serve";

/** Loads the model; `dispose` frees it. @throws EngineError or HubError when it cannot be loaded. */
export async function openPool(name: string, options: CreateCriaOptions) {
  const { model, adapter, mmproj, contextSize, maxSequences, device, threads, deterministic, ...chat } = options;
  const engine = await loadModel({
    path: model,
    // With an adapter, the KV type is that of training, so that the numbers are equal, too.
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
