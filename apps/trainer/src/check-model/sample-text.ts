import { type ChatMessage, makeUniform, type ToolSchema } from "@cria/core";
import type { LlamaModel } from "@cria/engine";

/** Ordinary text, code and numbers, for checks of a model without a task. */
const TEXTS = [
  "The library opens at nine in the morning. Whoever wants to borrow a book shows a card, and brings the book back within four weeks.",
  "def area(width, height):\n    return width * height\n\nprint(area(3, 4))  # 12, and area(7, 6) is 42",
  "Le lama vit dans les Andes. Il porte des charges de trente kilos, et sa laine est chaude; on le tond tous les deux ans.",
  '{"city": "Lima", "days": [{"day": 1, "low": 15.5, "high": 19}, {"day": 2, "low": 14, "high": 18.5}]}',
  "Question: a train leaves at 14:05 and arrives at 16:50. How long is the journey? Answer: two hours and forty-five minutes.",
  "1. Boil the water.\n2. Add salt and the pasta.\n3. Stir now and then, for nine minutes.\n4. Drain it, and keep a cup of the water.",
];

/** Beginnings of `count` different texts, in tokens; at most `length` of each. */
export function samplePrompts(model: Pick<LlamaModel, "tokenize">, count: number, length: number): Int32Array[] {
  return Array.from({ length: count }, (_, i) => {
    const text = TEXTS[i % TEXTS.length]!;
    return model.tokenize(i < TEXTS.length ? text : `${i}. ${text}`, { special: false }).slice(0, length);
  });
}

/** A tool for conversations, taken from the embedded examples. */
export const sampleTool: ToolSchema = {
  type: "function",
  function: {
    name: "calculator",
    description: "Evaluates an arithmetic expression.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string", description: 'For example "2 * (3 + 4)".' } },
      required: ["expression"],
    },
  },
};

export const user = (content: string): ChatMessage => ({ role: "user", content });

/** Standard normals from a seed (Box-Muller). */
export function makeNormals(seed: number): () => number {
  const uniform = makeUniform(seed);
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Fills a new adapter with values: its B is zero, so it would add nothing and escape every check. */
export async function fillAdapter(
  model: Pick<LlamaModel, "listTensors" | "writeTensor">,
  scale: number,
): Promise<void> {
  const normal = makeNormals(3);
  for (const { name, shape } of model.listTensors().filter((tensor) => tensor.name.endsWith(".lora_b")))
    await model.writeTensor(
      name,
      Float32Array.from({ length: shape[0]! * shape[1]! }, () => scale * normal()),
    );
}
