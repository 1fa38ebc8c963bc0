import type { Device } from "@cria/core";
import { type ChecksOf, checkOptions, isObject, optionChecks } from "@cria/core/internal";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { rolesSchema } from "../config/sections/roles.js";
import { listTargets, targetModulesSchema } from "../config/sections/target-modules.js";
import { Policy } from "./policy.js";
import { RolePolicy } from "./role-policy.js";

export interface LoadPolicyOptions {
  /**
   * The LoRA adapter to train: a new one (by default with rank 16 and the config's targets) or one from a file; null:
   * all weights are trained. With `roles`, the names of all roles that the policy plays, each role has an adapter of
   * its own, which starts as this one: `policy.roles` has the policies to train. Default: a new adapter.
   */
  lora?: {
    rank?: number;
    alpha?: number;
    targets?: string | readonly string[];
    path?: string;
    roles?: readonly string[];
  } | null;
  /**
   * The projector with which the policy sees images: llama.cpp's mmproj, a GGUF or its address. Default: the policy
   * reads only text.
   */
  mmproj?: string;
  /**
   * Minimum and maximum number of tokens that an image is scaled to, if the projector takes images of any size;
   * default: the values in its file.
   */
  imageMinTokens?: number;
  imageMaxTokens?: number;
  /** Maximum number of tokens of a conversation; default 1024. */
  contextSize?: number;
  /** Maximum number of concurrent conversations; default 64. */
  maxSequences?: number;
  /** Type of the cached keys and values, as `loadModel` takes it; default "f32". */
  kvType?: LoadModelOptions["kvType"];
  /** Seed of sampling and of a new adapter's initial values; default 0. */
  seed?: number;
  /** "auto" (default), "cpu", "cuda", "metal" or "vulkan". */
  device?: Device;
  /** Number of CPU threads; default: all cores. */
  threads?: number;
  /** True if the same seed must give the same bits however conversations are batched; default true. */
  deterministic?: boolean;
  /** With full training: true keeps a frozen copy, for losses with a KL term. LoRA needs none. Default false. */
  reference?: boolean;
}

const { any, text, count, flag } = optionChecks;

const policyChecks: ChecksOf<Required<LoadPolicyOptions>> = {
  lora: [
    (value) => value === null || isObject(value),
    "{ rank, alpha, targets, path, roles }, or null",
    {
      rank: any,
      alpha: any,
      targets: any,
      path: text,
      roles: [(value) => rolesSchema.safeParse(value).success, 'different names of letters, digits, "_" and "-"'],
    },
  ],
  mmproj: text,
  imageMinTokens: count,
  imageMaxTokens: count,
  contextSize: count,
  maxSequences: count,
  kvType: any,
  seed: optionChecks.whole,
  device: any,
  threads: count,
  deterministic: flag,
  reference: flag,
};

/** Implements `loadPolicy` of when-called.ts. */
export async function loadPolicy(path: string, options: LoadPolicyOptions = {}): Promise<Policy> {
  checkOptions("loadPolicy", options, policyChecks);
  const { lora = {}, contextSize = 1024, maxSequences = 64, seed = 0, device, threads, deterministic = true } = options;
  const { kvType, mmproj, imageMinTokens, imageMaxTokens } = options;
  const vision = mmproj === undefined ? {} : { mmproj, imageMinTokens, imageMaxTokens };
  const { roles, ...adapter } = lora ?? {};
  const engine = await loadModel({
    path,
    ...vision,
    contextSize,
    maxSequences,
    kvType,
    device,
    threads,
    deterministic,
    seed: seed >>> 0,
    trainable: lora ? "lora" : "full",
    lora: lora
      ? { ...adapter, rank: lora.rank ?? (lora.path ? undefined : 16), targets: readTargets(lora.targets) }
      : null,
  });
  try {
    const tokenizer = DeltaTokenizer.forModel(engine);
    const isOwn = lora !== null;
    const copy =
      options.reference && !isOwn
        ? await loadReference(engine.info.path, { scoredContextSize: contextSize, device, threads, ...vision })
        : null;
    const parts = { engine, tokenizer, reference: isOwn ? engine : copy, seed };
    return roles ? await RolePolicy.open(parts, roles) : new Policy(parts);
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

/**
 * Loads a frozen copy. It has an adapter because only a trainable model has the scoring graph; the adapter is never
 * trained and stays off.
 */
export function loadReference(
  path: string,
  options: Pick<
    LoadModelOptions,
    "scoredContextSize" | "device" | "threads" | "mmproj" | "imageMinTokens" | "imageMaxTokens"
  >,
) {
  return loadModel({
    path,
    ...options,
    contextSize: 64,
    maxSequences: 1,
    trainable: "lora",
    lora: { rank: 1, alpha: 1 },
  });
}

function readTargets(targets: string | readonly string[] | undefined): string[] | undefined {
  if (targets === undefined) return undefined;
  return listTargets(targetModulesSchema.parse(targets));
}
