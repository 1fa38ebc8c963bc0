import { DataError, type PolicyEngine } from "@cria/core";
import { type ChatModel, ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { describeGraph } from "../model/describe-graph.js";
import { serveEngine } from "../model/serve-engine.js";
import type { ServedModel, ServedSession } from "../model/served-model.js";

/** A model in this process with an accessible engine: a `ChatSession` or a `ChatPool`. */
export interface LocalChat extends ChatModel {
  readonly model: Pick<ChatSessionOptions, "engine" | "tokenizer">;
}

/** Serves a chat that its owner holds and disposes of: every conversation belongs to it. */
export function serveChat(chat: LocalChat): ServedModel {
  const { tokenizer } = chat.model;
  // Without sessions and text completions of the server's own, `serveEngine` uses only the methods that a chat's engine
  // has.
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

/** Refuses text completions: no training would see them. */
async function refuseText(): Promise<never> {
  throw new DataError("are not served here", {
    code: "chat/bad-request",
    subject: "completions of texts",
    expected: "a conversation: /v1/chat/completions, /v1/responses or /v1/messages",
  });
}
