import type { ChatMessage } from "@cria/core";
import { FakeTokenizer, fakeChatTemplate } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { ChatTemplate, DeltaTokenizer, InferenceConversation, type TextTokenizer } from "./index.js";

const MERGED = 5000;
const bytes = new FakeTokenizer();
const endOfTurn = bytes.idOf("<|im_end|>");
/** ChatML that drops reasoning from turns before a user's message, as Qwen3 does. */
const forgetful = `{%- set last = namespace(user=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set last.user = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\n' -}}
{{- m.content.split('</think>')[-1].lstrip('\n') if m.role == 'assistant' and loop.index0 < last.user else m.content -}}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`;

const make = (source: string, tokenizer: TextTokenizer = bytes) =>
  new DeltaTokenizer(new ChatTemplate(source), tokenizer, { bosToken: null, endOfTurnTokens: [endOfTurn] });
const system: ChatMessage = { role: "system", content: "be brief" };
const user = (content: string): ChatMessage => ({ role: "user", content });
const says = (content: string): ChatMessage => ({ role: "assistant", content });
const sample = (text: string) => [...bytes.tokenize(text), endOfTurn];

describe("InferenceConversation (use_inference_chat_template)", () => {
  it("8. while history stays, a turn is the same as a delta and nothing is evaluated again", () => {
    const delta = make(fakeChatTemplate);
    const conversation = new InferenceConversation(delta);
    const first = conversation.encodeTurn([system, user("hi")]);
    expect(first).toMatchObject({ keep: 0, droppedSampled: 0 });
    expect(first.tokenIds).toEqual(delta.encodePrompt([system, user("hi")]));
    conversation.addSampled(sample("<think>\nhm\n</think>\n\nhello"));
    const messages = [system, user("hi"), says("<think>\nhm\n</think>\n\nhello"), user("bye")];
    const second = conversation.encodeTurn(messages);
    expect(second.keep).toBe(first.tokenIds.length + sample("<think>\nhm\n</think>\n\nhello").length);
    expect(second.tokenIds).toEqual(delta.encodeDelta([user("bye")], true));
    expect(second.contextIds).toEqual(delta.encodePrompt(messages));
    expect([...second.contextMask].filter(Boolean)).toHaveLength(sample("<think>\nhm\n</think>\n\nhello").length);
  });

  it("8. re-evaluates from the first turn that the template rewrites, and nothing before it", () => {
    const delta = make(forgetful);
    const conversation = new InferenceConversation(delta);
    const prompt = conversation.encodeTurn([system, user("hi")]).tokenIds;
    const said = "<think>\nhm\n</think>\n\nhello";
    conversation.addSampled(sample(said));
    const messages = [system, user("hi"), says(said), user("bye")];
    const turn = conversation.encodeTurn(messages);
    expect(turn.contextIds).toEqual(delta.encodePrompt(messages));
    expect(turn.droppedSampled).toBe(sample(said).length);
    // The beginning of the turn, where a loop can keep a fork of the sequence.
    expect(turn.keep).toBe(prompt.length);
    expect([...turn.contextMask]).not.toContain(1);

    conversation.addSampled(sample("ok"));
    const next = conversation.encodeTurn([...messages, says("ok"), { role: "tool", content: "7" }]);
    expect(next.keep).toBe(turn.contextIds.length + sample("ok").length);
    expect(next.droppedSampled).toBe(0);
  });

  it("8. goes back to the last special token where the rewritten text would merge with what stays", () => {
    const merging: TextTokenizer = {
      tokenize: (text, options) => Int32Array.from(merge([...bytes.tokenize(text, options)], [10, 98])),
      detokenize: (ids, options) =>
        bytes.detokenize(
          Array.from(ids).flatMap((id) => (id === MERGED ? [10, 98] : [id])),
          options,
        ),
      listSpecialTokens: () => bytes.listSpecialTokens(),
    };
    const delta = make(forgetful, merging);
    const conversation = new InferenceConversation(delta);
    const prompt = conversation.encodeTurn([user("hi")]).tokenIds;
    conversation.addSampled(sample("<think>\nhm\n</think>bye"));
    // "assistant\n" and "bye" now share a token, the newline and the "b".
    const messages = [user("hi"), says("<think>\nhm\n</think>bye"), user("so?")];
    const turn = conversation.encodeTurn(messages);
    expect(turn.contextIds).toEqual(delta.encodePrompt(messages));
    expect(turn.keep).toBe(prompt.length - "assistant\n".length);
  });

  it("2. a cut turn keeps its sampled tokens; the end-of-turn token comes with the next text", () => {
    const delta = make(fakeChatTemplate);
    const conversation = new InferenceConversation(delta);
    const prompt = conversation.encodeTurn([user("hi")]).tokenIds;
    conversation.addSampled(bytes.tokenize("hel"));
    const turn = conversation.encodeTurn([user("hi"), says("hel"), user("go on")]);
    expect(turn.keep).toBe(prompt.length + 3);
    expect(turn.tokenIds).toEqual(delta.encodeDelta([user("go on")], false));
    expect(turn.tokenIds[0]).toBe(endOfTurn);
  });

  it("sampled tokens stay as sampled where their text stays", () => {
    // One token for "ab", where the policy sampled two.
    const merging: TextTokenizer = {
      tokenize: (text, options) => Int32Array.from(merge([...bytes.tokenize(text, options)], [97, 98])),
      detokenize: (ids, options) =>
        bytes.detokenize(
          Array.from(ids).flatMap((id) => (id === MERGED ? [97, 98] : [id])),
          options,
        ),
      listSpecialTokens: () => bytes.listSpecialTokens(),
    };
    const conversation = new InferenceConversation(make(fakeChatTemplate, merging));
    const prompt = conversation.encodeTurn([user("ab")]).contextIds;
    expect([...prompt]).toContain(MERGED);
    conversation.addSampled([97, 98, endOfTurn]);
    const turn = conversation.encodeTurn([user("ab"), says("ab"), user("more")]);
    expect([...turn.contextIds.slice(prompt.length, prompt.length + 3)]).toEqual([97, 98, endOfTurn]);
    expect(turn.keep).toBe(prompt.length + 3);
  });

  it("11. positions run on: the next text begins where the kept tokens end, at every turn", () => {
    const delta = make(forgetful);
    const conversation = new InferenceConversation(delta);
    const messages: ChatMessage[] = [system, user("hi")];
    let held = new Int32Array(0);
    for (let i = 0; i < 6; i++) {
      const turn = conversation.encodeTurn(messages);
      expect([...turn.contextIds]).toEqual([...held.slice(0, turn.keep), ...turn.tokenIds]);
      const said = `<think>\n${i}\n</think>\n\nanswer ${i}`;
      conversation.addSampled(sample(said));
      held = Int32Array.from([...turn.contextIds, ...sample(said)]);
      messages.push(says(said), i % 2 === 0 ? { role: "tool", content: `${i}` } : user(`${i}`));
    }
  });
});

/** Merges the pair into one token: the smallest vocabulary in which a text has two spellings. */
function merge(ids: number[], [first, second]: [number, number]): number[] {
  const merged: number[] = [];
  for (const id of ids) {
    if (id === second && merged.at(-1) === first) merged[merged.length - 1] = MERGED;
    else merged.push(id);
  }
  return merged;
}
