import { aiSdk } from "./ai-sdk.js";
import { anthropic } from "./anthropic.js";
import type { Client } from "./client.js";
import { langchain } from "./langchain.js";
import { openaiAgents } from "./openai-agents.js";
import { openaiChat } from "./openai-chat.js";
import { openaiResponses } from "./openai-responses.js";

/** In the order of the documentation's table. */
export const clients: readonly Client[] = [openaiChat, openaiResponses, aiSdk, openaiAgents, langchain, anthropic];
