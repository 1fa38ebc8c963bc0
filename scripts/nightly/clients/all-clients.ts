import { aiSdk } from "./ai-sdk.js";
import { anthropic } from "./anthropic.js";
import type { Client } from "./client.js";
import { langchain } from "./langchain.js";
import { mastra } from "./mastra.js";
import { openaiAgents } from "./openai-agents.js";
import { openaiChat } from "./openai-chat.js";
import { openaiResponses } from "./openai-responses.js";

/** Those of `tests/clients`, and those that need Node 22. */
export const clients: readonly Client[] = [
  openaiChat,
  openaiResponses,
  aiSdk,
  openaiAgents,
  langchain,
  anthropic,
  mastra,
];
