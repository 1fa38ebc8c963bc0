import type { ChatMessage } from "@cria/core";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { BaseInteraction, CalculatorTool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { type FakeRolloutOptions, makeFakeRollout } from "../testing/index.js";

const mistralTokens = ["</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]"].concat([
  "[TOOL_RESULTS]",
  "[/TOOL_RESULTS]",
  "[SYSTEM_PROMPT]",
  "[/SYSTEM_PROMPT]",
  "[ARGS]",
  "[CALL_ID]",
  "[TOOL_CONTENT]",
]);
const harmony = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"];
const json = '{"expression": "6*7"}';
const called = { name: "calculator", arguments: { expression: "6*7" } };

interface Model {
  template: string;
  specialTokens: readonly string[];
  endTokens: readonly string[];
  format: string;
  /** The sampled turns: a call, then an answer. */
  call: string;
  answer: string;
  /** The same turns in the form that the template receives. */
  structured: [ChatMessage, ChatMessage];
  /** Id that the tool's answer refers to. */
  id?: string;
}

const callMessage = (more: Partial<ChatMessage> = {}, id?: string): ChatMessage => ({
  role: "assistant",
  content: "",
  ...more,
  tool_calls: [{ ...(id ? { id } : {}), type: "function", function: called }],
});

/** Real templates that refuse calls which are only text. */
const models: Model[] = [
  {
    template: "mistralai-Mistral-Nemo-Instruct-2407",
    specialTokens: mistralTokens,
    endTokens: ["</s>"],
    format: "mistral",
    call: `[TOOL_CALLS][{"name": "calculator", "arguments": ${json}, "id": "Ab3dEf7hI"}]`,
    answer: "It is 42.",
    structured: [callMessage({}, "Ab3dEf7hI"), { role: "assistant", content: "It is 42." }],
    id: "Ab3dEf7hI",
  },
  {
    template: "Mistral-Small-3.2-24B-Instruct-2506",
    specialTokens: mistralTokens,
    endTokens: ["</s>"],
    format: "mistral",
    // Mistral's templates would refuse this id, so it is replaced.
    call: `[TOOL_CALLS]calculator[CALL_ID]call_1[ARGS]${json}`,
    answer: "It is 42.",
    structured: [callMessage(), { role: "assistant", content: "It is 42." }],
  },
  {
    template: "openai-gpt-oss-120b",
    specialTokens: harmony,
    endTokens: ["<|call|>", "<|return|>"],
    format: "gpt_oss",
    call: `<|channel|>analysis<|message|>I compute.<|end|><|start|>assistant<|channel|>commentary to=functions.calculator <|constrain|>json<|message|>${json}`,
    answer:
      "<|channel|>analysis<|message|>So 42.<|end|><|start|>assistant<|channel|>final<|message|>It is 42.<|return|>",
    structured: [
      callMessage({ reasoning_content: "I compute." }),
      { role: "assistant", content: "It is 42.", reasoning_content: "So 42." },
    ],
  },
];

class Encouraging extends BaseInteraction {
  override async startInteraction() {}
  override async generateResponse(_id: string, messages: readonly ChatMessage[]) {
    return { shouldTerminate: messages.length > 5, content: "And now?", score: 0 };
  }
  override async finalizeInteraction() {}
}

function play(model: Model, useInferenceChatTemplate: boolean, more: Partial<FakeRolloutOptions> = {}) {
  const seen: string[] = [];
  const rollout = makeFakeRollout({
    reply: ({ text }) => {
      const turn = seen.push(text) - 1;
      const said = turn === 0 ? model.call : model.answer;
      return { text: said, end: !model.endTokens.some((end) => said.endsWith(end)) };
    },
    engine: {
      chatTemplate: readBundledTemplate(model.template),
      specialTokens: model.specialTokens,
      endTokens: model.endTokens,
      contextSize: 16_384,
    },
    maxPromptLength: 8192,
    tools: [new CalculatorTool()],
    multiTurn: { useInferenceChatTemplate, format: model.format },
    ...more,
  });
  return { ...rollout, seen };
}

describe.each(models)("$template", (model) => {
  const question: ChatMessage = { role: "user", content: "hi" };
  const toolAnswer: ChatMessage = {
    role: "tool",
    name: "calculator",
    ...(model.id ? { tool_call_id: model.id } : {}),
    content: "42",
  };

  it("use_inference_chat_template: each turn sees the template's rendering of structured calls", async () => {
    const { options, run, seen } = play(model, true, { interactions: [new Encouraging({}, "test")] });
    const [t] = await run();
    expect(t!.error).toBeUndefined();
    expect(t!).toMatchObject({
      finishReason: "stop",
      metrics: { tool_calls: 1, tool_errors: 0, interaction_turns: 2 },
    });
    const schemas = [options.tools.get("calculator")!.schema];
    const messages = [
      question,
      model.structured[0],
      toolAnswer,
      model.structured[1],
      { role: "user", content: "And now?" },
    ];
    expect(seen).toEqual([1, 3, 5].map((n) => options.tokenizer.render(messages.slice(0, n) as never, schemas, true)));
    // The record contains the sampled text, which is trained on.
    expect(t!.messages[1]).toEqual({ role: "assistant", content: model.call });
    expect(t!.responseMask.includes(1)).toBe(true);
    expect(t!.metrics.tokenization_mismatch).toBeUndefined();
  });

  it("without it: the tool's answer is a delta behind the call, with the id that the model gave or one of ours", async () => {
    const { options, run, seen } = play(model, false);
    const [t] = await run();
    expect(t!.error).toBeUndefined();
    expect(t!.metrics).toMatchObject({ tool_calls: 1, tool_errors: 0 });
    expect(seen[1]!.startsWith(seen[0]! + model.call)).toBe(true);
    const end = model.endTokens[0]!;
    const delta = seen[1]!.slice(seen[0]!.length + model.call.length + end.length);
    const whole = options.tokenizer.render([question, model.structured[0], toolAnswer], [], true);
    expect(whole.endsWith(end + delta)).toBe(true);
    expect(delta).toContain("42");
    expect(t!.messages.find((m) => m.role === "tool")).toEqual(toolAnswer);
  });

  it("a tool's changes of its arguments do not change the call that the policy is shown", async () => {
    class Greedy extends CalculatorTool {
      override async execute(id: string, parameters: Record<string, unknown>) {
        const result = await super.execute(id, parameters);
        parameters.expression = "REWRITTEN";
        return result;
      }
    }
    const { run, seen } = play(model, true, { tools: [new Greedy()] });
    const [t] = await run();
    expect(t!.metrics).toMatchObject({ tool_calls: 1, tool_errors: 0 });
    expect(seen[1]).toContain("6*7");
    expect(seen[1]).not.toContain("REWRITTEN");
  });

  it("a call that cannot be read has its answer too", async () => {
    for (const production of [true, false]) {
      const { run } = play({ ...model, call: model.call.replace('"6*7"', "6*") }, production);
      const [t] = await run();
      expect(t!.error).toBeUndefined();
      expect(t!.metrics).toMatchObject({ tool_invalid_call: 1 });
      expect(t!.messages.filter((m) => m.role === "tool")[0]!.content).toMatch(/invalid call/);
      expect(t!.messages).toHaveLength(4);
    }
  });
});

describe("templates that keep calls as text", () => {
  it("keep sampled tokens: none is rendered anew, none taken out of training", async () => {
    for (const template of ["Qwen-Qwen2.5-7B-Instruct", "cria-tiny"]) {
      const chatTemplate = template === "cria-tiny" ? undefined : readBundledTemplate(template);
      // Differs from the template's rendering: no newlines, other spaces.
      const call = '<tool_call>{"name":"calculator","arguments":{"expression":"6*7"}}</tool_call>';
      const { engine, run } = makeFakeRollout({
        reply: ({ turn }) => (turn === 0 ? call : "42"),
        engine: { chatTemplate },
        tools: [new CalculatorTool()],
        multiTurn: { useInferenceChatTemplate: true },
      });
      const [t] = await run();
      const sampled = engine.detokenize([...t!.tokenIds].filter((_, i) => t!.responseMask[i]));
      expect(sampled).toBe(`${call}<|im_end|>42<|im_end|>`);
      expect(t!.metrics.rewritten_turns).toBeUndefined();
    }
  });
});

describe("templates that know no tools", () => {
  const chatTemplate = readBundledTemplate("google-gemma-2-2b-it");
  const make = (more: Partial<FakeRolloutOptions>) => {
    let sampled = 0;
    const reply = () => {
      sampled++;
      return "fine";
    };
    return { ...makeFakeRollout({ reply, engine: { chatTemplate }, ...more }), count: () => sampled };
  };

  it("are refused with the template's complaint before anything is sampled", async () => {
    for (const useInferenceChatTemplate of [true, false]) {
      const { run, count, engine } = make({ tools: [new CalculatorTool()], multiTurn: { useInferenceChatTemplate } });
      await expect(run()).rejects.toMatchObject({
        code: "config/template-cannot-answer",
        received: expect.stringContaining("roles"),
      });
      expect(count()).toBe(0);
      expect(engine.counts.disposed).toBe(engine.counts.created);
    }
  });

  it("do for rows without tools", async () => {
    const { run } = make({
      interactions: [new Encouraging({}, "test")],
      multiTurn: { useInferenceChatTemplate: true },
    });
    const [t] = await run();
    expect(t).toMatchObject({ finishReason: "stop", numTurns: 6 });
    expect(t!.error).toBeUndefined();
  });
});
