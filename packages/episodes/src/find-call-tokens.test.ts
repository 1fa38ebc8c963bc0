import { expect, it } from "vitest";
import { findCallTokens } from "./find-call-tokens.js";

/** A token for each character. */
const encode = (text: string) => Int32Array.from(text, (character) => character.charCodeAt(0));
const decode = (ids: ArrayLike<number>) => String.fromCharCode(...Array.from(ids));

it.each([
  ["kept space around it", "a <call> b", "a  b", "", "<call>"],
  ["lost space at the ends", "\n\na <call> b\n", "a  b", "", "<call>"],
  ["nothing but lost space around it", "\n<call>", "", "", "\n<call>"],
  ["words that the prompt has said", "<think>a</think><call>", "<think>a</think>", "<think>", "<call>"],
  ["thoughts that the parser leaves out", "<think>a</think><call>b", "b", "<think>", "a</think><call>"],
])("finds a call in a turn with %s", (_, text, content, opening, expected) => {
  const ids = encode(text.slice(opening.length));
  const { start, end } = findCallTokens(text, { content }, ids, decode, opening);
  expect(decode(ids.subarray(start, end))).toBe(expected);
});
