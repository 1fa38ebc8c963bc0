import type { ChatAnswer, ChatModel, ChatOptions, ChatRequest } from "@cria/rollout";
import { readAnswer, TurnStream } from "@cria/rollout/internal";
import { getToolFormat } from "@cria/tools";

/** The model's output, as text with its marks, or an error to fail with. */
export type Script = (request: ChatRequest, call: number) => string | Error | Promise<string | Error>;

export interface ScriptedChat extends ChatModel {
  readonly requests: ChatRequest[];
}

/** A model that gives its script's output, in pieces of five characters, with Hermes calls. Tokens are characters. */
export function scriptChat(script: Script): ScriptedChat {
  const requests: ChatRequest[] = [];
  return {
    name: "scripted",
    requests,
    complete: async (request, { signal, onEvent = () => {} }: ChatOptions = {}): Promise<ChatAnswer> => {
      signal?.throwIfAborted();
      const call = requests.push(request) - 1;
      const format = getToolFormat("hermes");
      const stream = new TurnStream(format, onEvent);
      const said = await script(request, call);
      const text = typeof said === "string" ? said : "fails here";
      for (let at = 0; at < text.length; at += 5) {
        await new Promise((resolve) => setImmediate(resolve));
        signal?.throwIfAborted();
        stream.push(text.slice(at, at + 5));
      }
      if (typeof said !== "string") throw said;
      const { message } = readAnswer(text, format, request.tools ?? [], (index) => `call${call}x${index}`);
      stream.end(message);
      const tokenIds = Int32Array.from(text, (char) => char.codePointAt(0)!);
      const promptTokenIds = Int32Array.from(JSON.stringify(request.messages), (char) => char.codePointAt(0)!);
      return {
        node: `node${call}`,
        session: "session",
        message,
        finishReason: message.tool_calls ? "tool_calls" : "stop",
        promptTokenIds,
        tokenIds,
        logprobs: Float32Array.from(tokenIds, () => -0.5),
        usage: {
          promptTokens: promptTokenIds.length,
          completionTokens: tokenIds.length,
          reasoningTokens: 0,
          reusedTokens: 2,
        },
        policyVersion: 3,
      };
    },
  };
}

/** A call in the model's format. */
export function writeCall(name: string, values: unknown): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: values })}\n</tool_call>`;
}
