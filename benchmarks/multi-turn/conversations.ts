/** Texts of the benchmark: prompts that a group shares, and the tools' answers, each of a given number of tokens. */
export interface Workload {
  groups: number;
  /** Conversations of a group. */
  groupSize: number;
  turns: number;
  /** Tokens, about: texts end with a whole word. */
  promptTokens: number;
  toolTokens: number;
  /** Sampled tokens of each turn, exactly. */
  responseTokens: number;
}

export interface Conversation {
  group: number;
  system: string;
  question: string;
  /** One after each turn but the last. */
  toolTexts: string[];
}

/** Words are tokens and delimiters a few more: room for them, and for tokens that a session renders differently. */
export const sizeContext = ({ promptTokens, turns, toolTokens, responseTokens }: Workload): number =>
  promptTokens + turns * (toolTokens + responseTokens + 32) + 128;

type CountTokens = (text: string) => number;

export function writeConversations(workload: Workload, countTokens: CountTokens): Conversation[] {
  const conversations: Conversation[] = [];
  for (let group = 0; group < workload.groups; group++) {
    const half = workload.promptTokens / 2;
    const system = writeText(half, 1, countTokens);
    const question = writeText(half, 100 + group, countTokens);
    for (let i = 0; i < workload.groupSize; i++) {
      const seed = 1000 * (1 + group * workload.groupSize + i);
      const toolTexts = Array.from({ length: workload.turns - 1 }, (_, turn) =>
        writeText(workload.toolTokens, seed + turn, countTokens),
      );
      conversations.push({ group, system, question, toolTexts });
    }
  }
  return conversations;
}

/**
 * Plain text rather than a model's own template, so that all contenders and vocabularies have the same few delimiters.
 */
export function renderPrompt({ system, question }: Conversation): string {
  return `system: ${system}\nuser: ${question}\nassistant:`;
}

export function renderDelta(toolText: string): string {
  return `\nuser: ${toolText}\nassistant:`;
}

/** The same for node-llama-cpp's TemplateChatWrapper. */
export const chatTemplate = {
  template: "{{systemPrompt}}{{history}}assistant:{{completion}}\nuser: ",
  historyTemplate: {
    system: "system: {{message}}\n",
    user: "user: {{message}}\n",
    model: "assistant:{{message}}\n",
  },
} as const;

/** Samples of one prompt must go apart, as they do in training. */
export function chooseSeed(conversation: number, turn: number): number {
  return 100 * conversation + turn;
}

const WORDS =
  "the result of search for page shows that river basin was measured in total as number and value with 12 48 305 per day at " +
  "station north where average rate over month is given by table row column price stock item left found list record date";

function writeText(tokens: number, seed: number, countTokens: CountTokens): string {
  const words = WORDS.split(" ");
  let state = seed * 2654435761;
  let text = "";
  do {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    text += (text === "" ? "" : " ") + words[(state >>> 8) % words.length]!;
  } while (countTokens(text) < tokens);
  return text;
}
