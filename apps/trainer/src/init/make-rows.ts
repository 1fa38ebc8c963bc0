import { hashSeed, makeUniform } from "@cria/rollout";

const things = ["marbles", "apples", "coins", "books", "stamps", "shells"];
const places = ["box", "bag", "basket", "jar", "drawer"];

/** Word problems of one step, the same for the same seed. */
export function makeRows(name: string, count: number, seed: string): Record<string, unknown>[] {
  const uniform = makeUniform(hashSeed(name, seed));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(uniform() * list.length)]!;
  return Array.from({ length: count }, (_, index) => {
    const [a, b] = [10 + Math.floor(uniform() * 89), 10 + Math.floor(uniform() * 89)];
    const thing = pick(things);
    const [first, second] = [pick(places), pick(places)];
    return {
      data_source: name,
      prompt: [
        { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
        {
          role: "user",
          content: `There are ${a} ${thing} in a ${first} and ${b} ${thing} in a ${second}. How many ${thing} in total?`,
        },
      ],
      reward_model: { style: "rule", ground_truth: String(a + b) },
      extra_info: { index },
    };
  });
}
