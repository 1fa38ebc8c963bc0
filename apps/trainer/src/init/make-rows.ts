import { hashSeed, makeUniform } from "@cria/core";

// Words that the embedded policy knows.
const things = ["marbles", "balls", "stamps", "oranges", "flowers", "apples"];
const people = ["Emma", "Jack", "Noah", "Zoe", "Lucy"];

/** One-step word problems, equal for equal seeds. */
export function makeRows(name: string, count: number, seed: string): Record<string, unknown>[] {
  const uniform = makeUniform(hashSeed(name, seed));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(uniform() * list.length)]!;
  return Array.from({ length: count }, (_, index) => {
    const [a, b] = [10 + Math.floor(uniform() * 89), 10 + Math.floor(uniform() * 89)];
    const [thing, person] = [pick(things), pick(people)];
    const [more, less] = [Math.max(a, b), Math.min(a, b)];
    const [problem, solution] =
      uniform() < 0.5
        ? [`There are ${a} ${thing} in a box and ${b} ${thing} in a bag. How many ${thing} in total?`, a + b]
        : [`${person} has ${more} ${thing} and loses ${less}. How many ${thing} are left?`, more - less];
    return {
      data_source: name,
      prompt: [
        { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
        { role: "user", content: problem },
      ],
      reward_model: { style: "rule", ground_truth: String(solution) },
      extra_info: { index },
    };
  });
}
