/**
 * node-llama-cpp as its users run many chats: one context with a sequence for each, a chat session on each sequence,
 * all prompted at once; the context batches them. A session keeps its sequence and evaluates only missing tokens.
 */
import { getLlama, LlamaChatSession, LlamaLogLevel, TemplateChatWrapper, TokenBias } from "node-llama-cpp";
import { type Conversation, chatTemplate, chooseSeed, type Workload } from "./conversations.js";
import type { RunResult } from "./run-ours.js";

export interface ChatSessions {
  run(): Promise<RunResult>;
  dispose(): Promise<void>;
}

export interface ChatSessionsOptions {
  path: string;
  conversations: readonly Conversation[];
  workload: Workload;
  /** Tokens of one conversation at most. */
  contextSize: number;
  threads: number;
  flashAttention: boolean;
}

export async function openChatSessions(options: ChatSessionsOptions): Promise<ChatSessions> {
  const { conversations, workload, contextSize, threads, flashAttention } = options;
  const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads });
  const model = await llama.loadModel({ modelPath: options.path });
  // A session ends a turn at special tokens; here all turns are equally long. Its public `set` ignores those tokens.
  const bias = new TokenBias(model.tokenizer);
  const biases: Map<number, number> = Reflect.get(bias, "_biases");
  for (const token of model.iterateAllTokens())
    if (model.isSpecialToken(token) || model.isEogToken(token)) biases.set(token, -Infinity);
  const run = async (): Promise<RunResult> => {
    const context = await model.createContext({
      sequences: conversations.length,
      contextSize,
      threads,
      flashAttention,
    });
    try {
      const sequences = conversations.map(() => context.getSequence());
      const sessions = conversations.map(
        ({ system }, i) =>
          new LlamaChatSession({
            contextSequence: sequences[i]!,
            systemPrompt: system,
            chatWrapper: new TemplateChatWrapper(chatTemplate),
          }),
      );
      let evaluatedPrompts = 0;
      const started = performance.now();
      const sampled = await Promise.all(
        sessions.map(async (session, i) => {
          const { question, toolTexts } = conversations[i]!;
          const tokens: number[] = [];
          for (const [turn, text] of [question, ...toolTexts].entries()) {
            await session.prompt(text, {
              maxTokens: workload.responseTokens,
              temperature: 1,
              topK: 0,
              topP: 1,
              seed: chooseSeed(i, turn),
              tokenBias: bias,
              onToken: (chunk) => tokens.push(...chunk),
            });
            if (turn === 0) evaluatedPrompts += sequences[i]!.tokenMeter.usedInputTokens;
          }
          return tokens;
        }),
      );
      const seconds = (performance.now() - started) / 1000;
      const meters = sequences.map(({ tokenMeter }) => tokenMeter);
      const evaluated = meters.reduce((sum, meter) => sum + meter.usedInputTokens + meter.usedOutputTokens, 0);
      return { seconds, sampled, evaluated, evaluatedPrompts };
    } finally {
      await context.dispose();
    }
  };
  return {
    run,
    dispose: async () => {
      await model.dispose();
      await llama.dispose();
    },
  };
}
