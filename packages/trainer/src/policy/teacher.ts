import { ConfigError, type PolicyEngine, type ScoreOptions } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import type { Policy } from "./policy.js";
import type { Teacher } from "./token-scores.js";

export interface LoadTeacherOptions extends Pick<LoadModelOptions, "device" | "threads"> {
  /** A LoRA adapter for the model. Default: none. */
  adapter?: string;
  /** true: it can sample turns too, in as many conversations at a time as the policy's engine holds. Default false. */
  samples?: boolean;
}

const teacherChecks: ChecksOf<Required<LoadTeacherOptions>> = {
  device: optionChecks.any,
  threads: optionChecks.count,
  adapter: optionChecks.text,
  samples: optionChecks.flag,
};

/** Implements `loadTeacher` of when-called.ts. */
export async function loadTeacher(path: string, policy: Policy, given: LoadTeacherOptions = {}): Promise<Teacher> {
  checkOptions("loadTeacher", given, teacherChecks);
  const { adapter, samples = false, ...options } = given;
  if (policy.engine.images) {
    throw new ConfigError("reads text alone, and the policy sees images", {
      code: "config/bad-value",
      subject: `teacher ${path}`,
      expected: "a policy without mmproj, or the policy's own model as teacher",
      received: "a policy with mmproj",
    });
  }
  const { contextSize, maxSequences } = policy.engine.info;
  const engine = await loadModel({
    path,
    ...options,
    // Only a trainable model has the scoring graph; this one is never trained. A new adapter changes nothing.
    trainable: "lora",
    lora: adapter === undefined ? { rank: 1, alpha: 1 } : { path: adapter },
    ...(samples ? { contextSize, maxSequences } : { contextSize: 64, maxSequences: 1 }),
    scoredContextSize: contextSize,
  });
  try {
    checkVocabulary(engine, policy.engine);
  } catch (error) {
    await engine.dispose();
    throw error;
  }
  return {
    score: async (sequences, { temperature, signal, topk } = {}) => {
      // The policy cannot say the teacher's further tokens.
      const likeliest = findLikeliest(topk, policy.engine.info.vocabSize);
      const options = { temperature, signal, adapter: adapter !== undefined, ...likeliest };
      return engine.score(sequences, options);
    },
    ...(samples ? { engine } : {}),
    dispose: () => engine.dispose(),
  };
}

/**
 * Makes a teacher of the policy's own model: before training (`base`), or as it is now (`live`). The latter teaches
 * something only if it is given a hint.
 */
export function teachItself(policy: Policy, weights: "base" | "live"): Teacher {
  return {
    score: async (sequences, { temperature, signal, topk } = {}) => {
      const options = { temperature, signal, ...findLikeliest(topk) };
      return weights === "base"
        ? policy.evaluateReference(sequences, options)
        : policy.engine.score(sequences, options);
    },
    dispose: () => Promise.resolve(),
  };
}

function findLikeliest(topk = 0, below?: number): Pick<ScoreOptions, "likeliest"> {
  return topk > 0 ? { likeliest: { count: topk, ...(below === undefined ? {} : { below }) } } : {};
}

/**
 * Checks that token ids have the same meaning in both models, and that the teacher knows every token of the policy.
 * Models of one family may differ in unused ids at the end, which pad their embeddings; the policy can sample its own
 * ones too.
 */
function checkVocabulary(teacher: PolicyEngine, policy: PolicyEngine): void {
  const shared = Math.min(teacher.info.vocabSize, policy.info.vocabSize);
  for (let id = 0; id < shared; id++) {
    const [given, known] = [teacher, policy].map((engine) => engine.detokenize([id], { special: true }));
    if (given === known) continue;
    throw new ConfigError("has another vocabulary than the policy", {
      code: "config/other-vocabulary",
      subject: `teacher ${teacher.info.path}`,
      expected: `token ${id} is ${JSON.stringify(known)}, as in ${policy.info.path}`,
      received: JSON.stringify(given),
      remedy: "a teacher of the policy's family: its logprobs are of the policy's tokens",
    });
  }
  if (shared < policy.info.vocabSize) {
    throw new ConfigError("lacks tokens that the policy can sample", {
      code: "config/other-vocabulary",
      subject: `teacher ${teacher.info.path}`,
      expected: `at least ${policy.info.vocabSize} tokens, as in ${policy.info.path}`,
      received: `${teacher.info.vocabSize} tokens`,
      remedy: "a teacher whose vocabulary is at least as large as the policy's",
    });
  }
}
