import { DataError, type PolicyEngine } from "@cria/core";
import { type ChatModel, ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { describeGraph } from "../model/describe-graph.js";
import { serveEngine } from "../model/serve-engine.js";
import type { ServedModel, ServedSession } from "../model/served-model.js";

/** A model of this process whose engine is at hand, as a `ChatSession` or a `ChatPool`. */
export interface LocalChat extends ChatModel {
  readonly model: Pick<ChatSessionOptions, "engine" | "tokenizer">;
}

/** A chat that others hold and free, as a model to serve: every conversation is one of it. */
export function serveChat(chat: LocalChat): ServedModel {
  const { tokenizer } = chat.model;
  // As much of an engine as a chat has is as much as is used without sessions and texts of its own.
  const engine = chat.model.engine as PolicyEngine;
  const served = serveEngine({ engine, tokenizer, name: chat.name, fingerprint: chat.name, format: "hermes" });
  return {
    ...served,
    openSession: ({ id }) => lend(chat, id),
    openPool: () => lend(chat, "anonymous"),
    complete: refuseText,
  };
}

function lend(chat: LocalChat, id: string): ServedSession {
  const session = chat instanceof ChatSession ? chat : null;
  return {
    id,
    name: chat.name,
    complete: (request, options) => chat.complete(request, options),
    reward: (value, node) => session?.reward(value, node),
    describe: () => (session ? describeGraph(session) : {}),
    dispose: () => {},
  };
}

/** What a text goes on with would be nobody's answer: a training would not see it. */
async function refuseText(): Promise<never> {
  throw new DataError("are not served here", {
    code: "chat/bad-request",
    subject: "completions of texts",
    expected: "a conversation: /v1/chat/completions, /v1/responses or /v1/messages",
  });
}
