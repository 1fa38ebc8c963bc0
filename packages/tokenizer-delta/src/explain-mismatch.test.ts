import type { ChatMessage } from "@cria/core";
import { afterAll, describe, expect, it, vi } from "vitest";
import { chatTemplate } from "../../../models/src/policy-prompt.js";
import { checkConversation, type DeltaTokenizer } from "./index.js";
import { disposeVocabularies, loadCase } from "./matrix/load-case.js";
import { templateCases } from "./matrix/templates.js";

afterAll(disposeVocabularies);

interface Played {
  messages: ChatMessage[];
  tokenIds: number[];
  mask: number[];
}

const user = (content: string): ChatMessage => ({ role: "user", content });
const answer = (content: string): ChatMessage => ({ role: "tool", name: "search", content });
const load = (template: string) => {
  const example = templateCases.find((one) => one.template === template)!;
  return loadCase(example, template === "cria-tiny" ? chatTemplate : undefined);
};

/** A rollout: texts of the policy and answers of others, in turns; the last turn is the policy's. */
function play(tokenizer: DeltaTokenizer, said: string[], heard: ChatMessage[], end?: string): Played {
  const { tokenizer: vocabulary } = tokenizer;
  const messages: ChatMessage[] = [user("What is 2 + 3?")];
  const tokenIds = [...tokenizer.encodePrompt(messages)];
  const mask = tokenIds.map(() => 0);
  for (const [i, text] of said.entries()) {
    const after = messages.at(-1)!.role === "tool" ? "tool" : "user";
    const ids = [...vocabulary.tokenize(text), ...vocabulary.tokenize(end ?? tokenizer.listEndTexts()[0]!)];
    tokenIds.push(...ids);
    mask.push(...ids.map(() => 1));
    messages.push({ role: "assistant", content: tokenizer.renderOpening(after) + text });
    if (!heard[i]) continue;
    const delta = tokenizer.encodeDelta([heard[i]], true);
    tokenIds.push(...delta);
    mask.push(...delta.map(() => 0));
    messages.push(heard[i]);
  }
  return { messages, tokenIds, mask };
}

const search = "<tool_call>\n{}\n</tool_call>";
const turns: Record<string, [said: string[], heard: ChatMessage[]]> = {
  "one turn": [["5"], []],
  "a call": [[search, "5"], [answer("5")]],
  "a user's question": [
    ["5", "6", "7"],
    [user("And 2 + 4?"), user("And 2 + 5?")],
  ],
  reasoning: [["<think>\nhm\n</think>\n\n5", "<think>\nso\n</think>\n\n6"], [user("And 2 + 4?")]],
  "stray reasoning marks": [["a </think> b <think> c", "  6 \n"], [user("And 2 + 4?")]],
};

describe("rewriting by a template is distinguished from faults", () => {
  it.each(Object.keys(turns))("a healthy run with Qwen3's template has no mismatch: %s", async (name) => {
    const tokenizer = await load("Qwen-Qwen3-0.6B");
    const kind = checkConversation(tokenizer, play(tokenizer, ...turns[name]!)).kind;
    expect(["rewritten", "equal", "drift"]).toContain(kind);
    if (name !== "reasoning") expect(kind).toBe("rewritten");
  });

  it.each(["Qwen-QwQ-32B", "Qwen3.5-4B", "google-gemma-4-31B-it-interleaved"])(
    "%s, whose prompt opens the turn",
    async (template) => {
      const tokenizer = await load(template);
      for (const said of [
        ["5", "6"],
        ["hm\n</think>\n\n5", "so\n</think>\n\n6"],
      ]) {
        const { kind } = checkConversation(tokenizer, play(tokenizer, said, [user("And 2 + 4?")]));
        expect(["rewritten", "equal", "drift"]).toContain(kind);
      }
    },
  );

  it("Qwen3.5, which keeps the opening of a turn after a tool until the user speaks again", async () => {
    const tokenizer = await load("Qwen3.5-4B");
    const text = "\n</think>\n\n";
    const said = [`${text}${search}`, `${text}${search}`, `${text}5`, `${text}6`];
    const played = play(tokenizer, said, [answer("4"), answer("5"), user("And 2 + 4?")]);
    expect(checkConversation(tokenizer, played).kind).toBe("rewritten");
    const other = played.messages.map((message) => (message.content === "4" ? answer("7") : message));
    expect(checkConversation(tokenizer, { ...played, messages: other }).kind).toBe("mismatch");
  });

  it("gpt-oss ends turns with <|return|>, and its template prints <|end|> in history", async () => {
    const tokenizer = await load("openai-gpt-oss-120b");
    const played = play(tokenizer, ["5", "6"], [user("And 2 + 4?")], "<|return|>");
    expect(tokenizer.tokenizer.detokenize(played.tokenIds)).toContain("5<|return|><|start|>user");
    expect(tokenizer.render(played.messages)).toContain("5<|end|><|start|>user");
    expect(checkConversation(tokenizer, played).kind).toBe("other_end");
  });

  it("another end of turn than the template prints", async () => {
    const tokenizer = await load("Qwen-Qwen2.5-7B-Instruct");
    const listEndTexts = vi.spyOn(tokenizer, "listEndTexts").mockReturnValue(["<|im_end|>", "<|endoftext|>"]);
    const played = play(tokenizer, ["5", "6"], [user("And 2 + 4?")], "<|endoftext|>");
    expect(checkConversation(tokenizer, played).kind).toBe("other_end");
    listEndTexts.mockRestore();
  });

  describe("with Qwen3's template, where every run differs from the rendering", () => {
    const start = async () => {
      const tokenizer = await load("Qwen-Qwen3-0.6B");
      return { tokenizer, played: play(tokenizer, ["5", "6"], [user("And 2 + 4?")]) };
    };
    const find = (tokenizer: DeltaTokenizer, { tokenIds }: Played, text: string, from = 0) =>
      tokenIds.findIndex((id, i) => i >= from && tokenizer.tokenizer.detokenize([id]) === text);
    const remove = ({ messages, tokenIds, mask }: Played, at: number): Played => ({
      messages,
      tokenIds: tokenIds.toSpliced(at, 1),
      mask: mask.toSpliced(at, 1),
    });

    it("a newline missing after the end of a turn is a mismatch", async () => {
      const { tokenizer, played } = await start();
      expect(checkConversation(tokenizer, played).kind).toBe("rewritten");
      const end = find(tokenizer, played, "<|im_end|>", played.mask.indexOf(1));
      expect(tokenizer.tokenizer.detokenize([played.tokenIds[end + 1]!])).toBe("\n");
      expect(checkConversation(tokenizer, remove(played, end + 1)).kind).toBe("mismatch");
    });

    it("so is an end of turn that stands twice", async () => {
      const { tokenizer, played } = await start();
      const end = find(tokenizer, played, "<|im_end|>", played.mask.indexOf(1));
      const { messages, tokenIds, mask } = played;
      const twice = {
        messages,
        tokenIds: tokenIds.toSpliced(end + 1, 0, tokenIds[end]!),
        mask: mask.toSpliced(end + 1, 0, 0),
      };
      expect(checkConversation(tokenizer, twice).kind).toBe("mismatch");
    });

    it("so is another text of a user's, of the prompt's, or of the record of a turn", async () => {
      const { tokenizer, played } = await start();
      for (const i of [0, 1, 2, 3]) {
        const messages = played.messages.map((message, k) => (k === i ? { ...message, content: "other" } : message));
        expect(checkConversation(tokenizer, { ...played, messages }).kind).toBe("mismatch");
      }
    });

    it("so are other tokens of the same text where nothing was sampled", async () => {
      const { tokenizer, played } = await start();
      const at = find(tokenizer, played, "What");
      const letters = ["W", "h", "a", "t"].flatMap((letter) => [...tokenizer.tokenizer.tokenize(letter)]);
      const spelled = {
        messages: played.messages,
        tokenIds: played.tokenIds.toSpliced(at, 1, ...letters),
        mask: played.mask.toSpliced(at, 1, ...letters.map(() => 0)),
      };
      expect(checkConversation(tokenizer, spelled).kind).toBe("mismatch");
    });

    it("the whole conversation is rendered once, for any result", async () => {
      const { tokenizer, played } = await start();
      checkConversation(tokenizer, played);
      const wrong = { ...played, messages: [user("other"), ...played.messages.slice(1)] };
      const render = vi.spyOn(tokenizer.template, "renderMarks");
      for (const conversation of [played, wrong]) {
        render.mockClear();
        checkConversation(tokenizer, conversation);
        expect(render).toHaveBeenCalledTimes(1);
      }
      render.mockRestore();
    });
  });
});
