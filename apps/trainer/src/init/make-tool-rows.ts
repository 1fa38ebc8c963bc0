import { hashSeed, makeUniform, type ToolSchema } from "@cria/core";
import { sampleArguments } from "../check-env/sample-arguments.js";

/** Ways to ask for one call. */
const phrases = [
  (name: string, given: string) => `Use the tool ${name} with these arguments: ${given}`,
  (name: string, given: string) => `Call ${name} with ${given} and say what it answers.`,
  (name: string, given: string) => `What does the tool ${name} answer to ${given}?`,
  (name: string, given: string) => `Please run ${name}. Its arguments are ${given}`,
];

/**
 * Initial rows, until the user has better ones: each asks for a call of one tool with arguments that fit it. The ground
 * truth is the tool's name. Equal for equal seeds.
 */
export function makeToolRows(
  name: string,
  schemas: readonly ToolSchema[],
  count: number,
  seed: string,
): Record<string, unknown>[] {
  const uniform = makeUniform(hashSeed(name, seed));
  return Array.from({ length: count }, (_, index) => {
    const { name: tool, parameters } = schemas[index % schemas.length]!.function;
    const phrase = phrases[Math.floor(uniform() * phrases.length)]!;
    return {
      data_source: name,
      prompt: [
        { role: "system", content: "You answer with the help of tools." },
        { role: "user", content: phrase(tool, JSON.stringify(sampleArguments(parameters))) },
      ],
      reward_model: { style: "rule", ground_truth: tool },
      extra_info: { index },
    };
  });
}
