import { ChatTemplate } from "@cria/tokenizer-delta";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { probeTemplate } from "@cria/trainer/internal";
import { describe, expect, it } from "vitest";

const ends = [
  "<turn|>",
  "<|tool_response>",
  "<|user|>",
  "<|observation|>",
  "[e~[",
  "<|end_of_text|>",
  "<|im_end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "</s>",
  "<|call|>",
  "<|return|>",
  "<｜end▁of▁sentence｜>",
];

function probe(source: string, kwargs: Record<string, unknown> = {}, eos = "</s>") {
  const template = new ChatTemplate(source, { bos_token: "<s>", eos_token: eos });
  const render = (messages: never, tools: never, addGenerationPrompt: boolean) =>
    template.render(messages, { tools, addGenerationPrompt, kwargs });
  return probeTemplate(render as never, ends);
}

describe("a model's tool format", () => {
  it.each([
    ["Qwen-Qwen2.5-7B-Instruct", "hermes"],
    ["Qwen-Qwen3-0.6B", "hermes"],
    ["Qwen-QwQ-32B", "hermes"],
    ["Qwen3-Coder", "qwen3_coder"],
    ["Qwen3.5-4B", "qwen3_coder"],
    ["NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"],
    ["meta-llama-Llama-3.1-8B-Instruct", "llama3_json"],
    ["meta-llama-Llama-3.2-3B-Instruct", "llama3_json"],
    ["mistralai-Mistral-Nemo-Instruct-2407", "mistral"],
    ["Mistral-Small-3.2-24B-Instruct-2506", "mistral"],
    ["unsloth-mistral-Devstral-Small-2507", "mistral"],
    ["openai-gpt-oss-120b", "gpt_oss"],
    ["deepseek-ai-DeepSeek-V3.1", "deepseek_v3"],
    ["deepseek-ai-DeepSeek-V3.2", "deepseek_v32"],
    ["deepseek-ai-DeepSeek-V4", "deepseek_v32"],
    ["mistralai-Ministral-3-14B-Reasoning-2512", "mistral"],
    ["LFM2.5-8B-A1B", "pythonic"],
    ["google-gemma-4-31B-it", "gemma4"],
    ["google-gemma-4-31B-it-interleaved", "gemma4"],
    ["GLM-4.6", "glm45"],
    ["GLM-4.7-Flash", "glm45"],
    ["moonshotai-Kimi-K2", "kimi_k2"],
    ["MiniMax-M2", "minimax_m2"],
    ["MiniMax-M3", "minimax_m3"],
    ["Kimi-K3", "kimi_k3"],
    ["tencent-Hy3", "hy3"],
    ["upstage-Solar-Open-100B", "solar_open"],
    ["Apertus-8B-Instruct", "apertus"],
    ["Cohere2MoE", "cohere"],
    ["NVIDIA-Nemotron-Nano-v2", "apriel"],
    ["NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3_coder"],
    ["StepFun3.5-Flash", "qwen3_coder"],
    ["inclusionai-ling-3.0-flash", "glm45"],
    ["poolside-Laguna-S-2.1", "glm45"],
    ["Spark2.5", "glm45"],
    ["Reka-Edge", "hermes"],
    ["MiMo-VL", "hermes"],
    ["ibm-granite-granite-4.0", "hermes"],
    ["ibm-granite-granite-4.1", "hermes"],
  ])("%s: %s", (name, format) => {
    const eos = name.startsWith("deepseek") ? "<｜end▁of▁sentence｜>" : "</s>";
    expect(probe(readBundledTemplate(name), { date_string: "26 Jul 2024" }, eos)).toEqual({
      format,
      // DeepSeek's leaves that to the system message.
      listsTools: !name.endsWith("V3.1"),
      showsAnswers: true,
    });
  });

  it("is the same if the prompt opens thinking that a whole turn leaves out", () => {
    expect(probe(readBundledTemplate("Qwen-Qwen3-0.6B"), { enable_thinking: false }).format).toBe("hermes");
  });

  it("is null if the template knows no tools, or if no parser reads its calls", () => {
    expect(probe(readBundledTemplate("google-gemma-2-2b-it"))).toEqual({
      format: null,
      listsTools: false,
      showsAnswers: false,
    });
    const own =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}CALL {{ c.function.name }} WITH {{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}";
    expect(probe(own)).toEqual({ format: null, listsTools: false, showsAnswers: true });
  });
});
