import { type Expression, isInClass, readGrammar } from "./read-grammar.js";

/** Characters to draw from a class, as far as it has them. */
const CHARACTERS = [..."abcXYZ_019 \n\t<>{}[]()|/\\\"'`.,:;-+é｜☃"];
/** Repetitions drawn above the fewest, at most. */
const MOST_MORE = 3;

/** Draws a text from a grammar that `readGrammar` reads. */
export function sampleGrammar(grammar: string, random: () => number): string {
  const rules = readGrammar(grammar);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;
  const draw = (expression: Expression): string => {
    switch (expression.kind) {
      case "choice":
        return draw(pick(expression.choices));
      case "row":
        return expression.items.map(draw).join("");
      case "repeat": {
        const { item, least, most } = expression;
        const more = Math.min(most - least, MOST_MORE);
        const count = least + (more === 0 ? 0 : Math.floor(random() * (more + 1)));
        return Array.from({ length: count }, () => draw(item)).join("");
      }
      case "text":
        return expression.text;
      case "class": {
        const choices = CHARACTERS.filter((char) => isInClass(char, expression));
        return pick(choices.length > 0 ? choices : [expression.ranges[0]![0]]);
      }
      case "rule":
        return draw(rules.get(expression.name)!);
    }
  };
  return draw(rules.get("root")!);
}
