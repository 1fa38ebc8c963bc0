import { type Expression, isInClass, readGrammar } from "./read-grammar.js";

/** True if a grammar that `readGrammar` reads allows exactly this text. */
export function matchesGrammar(grammar: string, text: string): boolean {
  const rules = readGrammar(grammar);
  const known = new Map<Expression, Map<number, ReadonlySet<number>>>();
  /** Indices at which the expression may end if it begins at one. */
  const match = (expression: Expression, at: number): ReadonlySet<number> => {
    const ofExpression = known.get(expression) ?? new Map<number, ReadonlySet<number>>();
    known.set(expression, ofExpression);
    const ends = ofExpression.get(at) ?? find(expression, at);
    ofExpression.set(at, ends);
    return ends;
  };
  const matchAll = (expression: Expression, from: Iterable<number>) =>
    new Set([...from].flatMap((at) => [...match(expression, at)]));
  const find = (expression: Expression, at: number): ReadonlySet<number> => {
    switch (expression.kind) {
      case "choice":
        return new Set(expression.choices.flatMap((choice) => [...match(choice, at)]));
      case "row":
        return expression.items.reduce<ReadonlySet<number>>((ends, item) => matchAll(item, ends), new Set([at]));
      case "repeat":
        return repeat(expression, at);
      case "text":
        return new Set(text.startsWith(expression.text, at) ? [at + expression.text.length] : []);
      case "class": {
        const char = at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : undefined;
        return new Set(char !== undefined && isInClass(char, expression) ? [at + char.length] : []);
      }
      case "rule":
        return match(rules.get(expression.name)!, at);
    }
  };
  const repeat = ({ item, least, most }: Expression & { kind: "repeat" }, at: number): ReadonlySet<number> => {
    const ends = new Set<number>(least === 0 ? [at] : []);
    let reached: ReadonlySet<number> = new Set([at]);
    for (let count = 1; count <= most && reached.size > 0; count++) {
      const next = matchAll(item, reached);
      // Above the least number only new places lead further.
      reached = count < least ? next : new Set([...next].filter((end) => !ends.has(end)));
      if (count >= least) for (const end of reached) ends.add(end);
    }
    return ends;
  };
  return match(rules.get("root")!, 0).has(text.length);
}
