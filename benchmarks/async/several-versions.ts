import { loadModel } from "@cria/engine";
import { compareRuns } from "../measure.js";
import { getModelFile, type ModelName } from "../models/index.js";
import type { Row } from "../row.js";
import { THREADS } from "../settings.js";

/** Conversations that decode at once. */
const CONVERSATIONS = [2, 8, 32];
const TOKENS = 40;
const PROMPT = 8;

const titleOf = (model: ModelName, conversations: number) =>
  `${model} Q8_0, ${conversations} conversations of two versions of an adapter`;

/** Decodes conversations that belong to two versions of an adapter, every other one to each, beside as many of one version. */
export async function measureSeveralVersions(
  includes: (title: string) => boolean,
  log: (text: string) => void,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const name of ["smollm2-135m", "qwen2.5-0.5b"] as const) {
    const chosen = CONVERSATIONS.filter((count) => includes(titleOf(name, count)));
    if (chosen.length === 0) continue;
    const model = await loadModel({
      path: await getModelFile(name, "Q8_0", log),
      trainable: "lora",
      lora: { rank: 16, alpha: 16 },
      contextSize: 256,
      maxSequences: Math.max(...CONVERSATIONS),
      threads: THREADS,
      drafting: false,
    });
    const versions = [await model.keepVersion(), await model.keepVersion()];
    /** Tokens per second of so many conversations, dealt in turn to the first `used` versions. */
    const decode = async (count: number, used: number) => {
      const sequences = Array.from({ length: count }, (_, i) => versions[i % used]!.engine.createSequence());
      for (const [i, sequence] of sequences.entries())
        await sequence.prefill(Array.from({ length: PROMPT }, (_, t) => 1 + i + t));
      const started = performance.now();
      await Promise.all(
        sequences.map((sequence, seed) => sequence.generate([1], { maxTokens: TOKENS, stopTokens: [], seed })),
      );
      const seconds = (performance.now() - started) / 1000;
      for (const sequence of sequences) sequence.dispose();
      return (count * TOKENS) / seconds;
    };
    for (const count of chosen) {
      const { one, two } = await compareRuns({ one: () => decode(count, 1), two: () => decode(count, 2) });
      log(`${titleOf(name, count)}: ${two.median.toFixed(0)} beside ${one.median.toFixed(0)} tokens per second`);
      rows.push({
        case: titleOf(name, count),
        metric: "sampled tokens per second",
        ours: two.median,
        peers: { "one version": one.median },
        target: null,
        met: null,
      });
    }
    for (const version of versions) await version.dispose();
    await model.dispose();
  }
  return rows;
}
