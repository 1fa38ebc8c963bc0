// This policy's calls of the calculator: `<<48/2>>`, as GSM8K's solutions note their sums. In the Hermes format the
// same call has five times as many tokens, and each token costs time on two cores.

/** A turn's text that asks for the value of an expression. */
export const writeCall = (expression: string): string => `<<${expression}>>`;

/** The parser that `multi_turn.format` names. */
export function parse(text: string) {
  const pattern = /<<([^<>]*)>>/g;
  const calls = [...text.matchAll(pattern)].map(([, expression]) => ({
    name: "calculator",
    arguments: { expression: expression! },
  }));
  return { content: text.replaceAll(pattern, ""), calls };
}
