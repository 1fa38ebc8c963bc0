import type { ChatMessage } from "@cria/core";
import { FakeTokenizer, fakeChatTemplate } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { ChatTemplate, checkConversation, checkTokenization, DeltaTokenizer, type TextTokenizer } from "./internal.js";

const AB = 5000;
const bytes = new FakeTokenizer();
const endOfTurn = bytes.idOf("<|im_end|>");
/** Bytes, except that "ab" is one token: the smallest vocabulary in which a text has two spellings. */
const merging: TextTokenizer = {
  tokenize(text, options) {
    const ids: number[] = [];
    for (const id of bytes.tokenize(text, options)) {
      if (id === 98 && ids.at(-1) === 97) ids[ids.length - 1] = AB;
      else ids.push(id);
    }
    return Int32Array.from(ids);
  },
  detokenize: (ids, options) =>
    bytes.detokenize(
      Array.from(ids).flatMap((id) => (id === AB ? [97, 98] : [id])),
      options,
    ),
  listSpecialTokens: () => bytes.listSpecialTokens(),
};
const delta = new DeltaTokenizer(new ChatTemplate(fakeChatTemplate), merging, {
  bosToken: null,
  endOfTurnTokens: [endOfTurn],
});
const prompt: ChatMessage[] = [{ role: "user", content: "cab?" }];

/** A conversation of one sampled turn, one tool answer and another turn. */
function play(first: number[], last: number[]) {
  const answer: ChatMessage = { role: "tool", content: "absent" };
  const parts: [ArrayLike<number>, 0 | 1][] = [
    [delta.encodePrompt(prompt), 0],
    [first, 1],
    [delta.encodeDelta([answer], first.at(-1) === endOfTurn), 0],
    [last, 1],
  ];
  const text = (ids: number[]) => merging.detokenize(ids.filter((id) => id !== endOfTurn));
  return {
    messages: [
      ...prompt,
      { role: "assistant", content: text(first) },
      answer,
      { role: "assistant", content: text(last) },
    ] as ChatMessage[],
    tokenIds: parts.flatMap(([ids]) => Array.from(ids)),
    mask: parts.flatMap(([ids, value]) => Array<number>(ids.length).fill(value)),
  };
}

describe("checkConversation", () => {
  it("9. equal: the concatenated ids are the tokenization of the whole conversation", () => {
    const played = play([AB, endOfTurn], [...bytes.tokenize("xyz"), endOfTurn]);
    expect(checkConversation(delta, played)).toEqual({ kind: "equal" });
  });

  it("9. drift: the policy spelled the same text in other tokens", () => {
    const played = play([97, 98, endOfTurn], [99, 97, 98, endOfTurn]);
    const check = checkConversation(delta, played);
    expect(check.kind).toBe("drift");
    expect(check.received).toContain("ab");
    expect(checkConversation(delta, { ...played, mode: "ignore_strippable" }).kind).toBe("drift");
  });

  it("9. mismatch: other tokens of the same text are not drift if they were not sampled", () => {
    const { messages, tokenIds, mask } = play([97, 98, endOfTurn], [AB, endOfTurn]);
    const at = tokenIds.indexOf(AB);
    expect(mask[at]).toBe(0);
    const spelled = {
      messages,
      tokenIds: [...tokenIds.slice(0, at), 97, 98, ...tokenIds.slice(at + 1)],
      mask: [...mask.slice(0, at), 0, 0, ...mask.slice(at + 1)],
    };
    const check = checkConversation(delta, spelled);
    expect(check.kind).toBe("mismatch");
    // The drift later in the same conversation does not hide it.
    expect(check.received).toContain("cab");
  });

  it("9. mismatch: other text, with the first difference and its context", () => {
    const played = play([AB, endOfTurn], [AB, endOfTurn]);
    played.messages[1] = { role: "assistant", content: "ax" };
    expect(checkConversation(delta, played)).toEqual({
      kind: "mismatch",
      expected: expect.stringContaining("ax<|im_end|>"),
      received: expect.stringContaining("ab<|im_end|>"),
    });
  });

  it("9. three modes: strict, ignore_strippable, disable", () => {
    const played = play([...bytes.tokenize(" a"), endOfTurn], [AB, endOfTurn]);
    played.messages[1] = { role: "assistant", content: "a\n" };
    expect(checkConversation(delta, { ...played, mode: "strict" }).kind).toBe("mismatch");
    expect(checkConversation(delta, { ...played, mode: "ignore_strippable" }).kind).toBe("equal");
    played.messages[1] = { role: "assistant", content: "other" };
    expect(checkConversation(delta, { ...played, mode: "ignore_strippable" }).kind).toBe("mismatch");
    expect(checkConversation(delta, { ...played, mode: "disable" }).kind).toBe("equal");
  });

  it("2. a turn that was cut is compared up to where it was cut, in the middle and at the end", () => {
    expect(checkConversation(delta, play([...bytes.tokenize("cu")], [...bytes.tokenize("end")])).kind).toBe("equal");
  });

  it("9. ends with an observation, or before the policy spoke", () => {
    const { messages, tokenIds, mask } = play([AB, endOfTurn], []);
    expect(checkConversation(delta, { messages: messages.slice(0, 3), tokenIds, mask }).kind).toBe("equal");
    const ids = delta.encodePrompt(prompt);
    expect(checkConversation(delta, { messages: prompt, tokenIds: ids, mask: new Uint8Array(ids.length) }).kind).toBe(
      "equal",
    );
  });

  it("a BOS token that the template does not print is not a difference", () => {
    const withBos = new DeltaTokenizer(delta.template, merging, {
      endOfTurnTokens: [endOfTurn],
      bosToken: bytes.idOf("<|endoftext|>"),
    });
    const tokenIds = withBos.encodePrompt(prompt);
    expect(tokenIds[0]).toBe(bytes.idOf("<|endoftext|>"));
    expect(checkConversation(withBos, { messages: prompt, tokenIds }).kind).toBe("equal");
  });

  it("9. never throws: a template that refuses leaves the conversation unchecked", () => {
    const refusing = new DeltaTokenizer(new ChatTemplate("{{ raise_exception('no') }}"), merging, {
      bosToken: null,
      endOfTurnTokens: [endOfTurn],
    });
    expect(checkConversation(refusing, { messages: prompt, tokenIds: [1] })).toMatchObject({
      kind: "unchecked",
      reason: expect.stringContaining("no"),
    });
    const broken: TextTokenizer = {
      ...merging,
      detokenize: () => {
        throw new Error("no such token");
      },
    };
    expect(checkTokenization([7], "x", broken)).toEqual({ kind: "unchecked", reason: "no such token" });
  });
});
