/** Rows of examples/tool-choice, and its tools' answers and rewards, for a peer that asks for them. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BaseTool, ChatMessage, RewardFunction } from "cria";
import { readLines } from "../lines.js";
import type { Question } from "../peers/trl/trl-peer.js";
import { toolChoiceFolder as example } from "../tool-choice.js";

export interface ExampleRow {
  data_source: string;
  prompt: ChatMessage[];
  reward_model: { ground_truth: unknown };
  extra_info: { tool_selection: string[] };
}

export function readRows(file: string): ExampleRow[] {
  const path = join(example, "build", file);
  try {
    return readLines<ExampleRow>(path);
  } catch (error) {
    throw new Error(`${path}: run \`npm run make-data\` in examples/tool-choice`, { cause: error });
  }
}

const loadExample = (file: string) => import(pathToFileURL(join(example, file)).href);
export const loadTools = async () => ((await loadExample("tools.ts")) as { tools: readonly BaseTool[] }).tools;

/** The answers of the peer's tools and the rewards of its conversations, by the example's own code. */
export async function openAnswers(
  rows: readonly ExampleRow[],
): Promise<(question: Question) => Promise<string | number>> {
  const tools = new Map((await loadTools()).map((tool) => [tool.schema.function.name, tool]));
  const { score } = (await loadExample("reward.ts")) as { score: RewardFunction };
  return async (question) => {
    const row = rows[question.row]!;
    if (question.ask === "reward") {
      const messages = [...row.prompt, ...readMessages(question.text)];
      const judged = await score(row.data_source, question.text, row.reward_model.ground_truth, {
        messages,
      } as unknown as Parameters<RewardFunction>[3]);
      return typeof judged === "number" ? judged : Number((judged as { score: number }).score);
    }
    const { tool_selection: offered } = row.extra_info;
    const tool = offered.includes(question.name) ? tools.get(question.name) : undefined;
    if (!tool) return `error: unknown tool "${question.name}"; the tools are: ${offered.join(", ")}`;
    const { properties = {}, required = [] } = tool.schema.function.parameters as {
      properties?: Record<string, { type: string }>;
      required?: string[];
    };
    const isRight = (name: string, value: unknown) => {
      const { type } = properties[name] ?? {};
      return type === "integer" ? Number.isInteger(value) : typeof value === type;
    };
    const given = Object.entries(question.arguments);
    if (!given.every(([name, value]) => isRight(name, value)) || required.some((name) => !(name in question.arguments)))
      return "error: invalid arguments";
    return (await tool.execute("", question.arguments)).response.text ?? "";
  };
}

/** The messages of a completion's text, which begins within the assistant's first. */
export function readMessages(completion: string): ChatMessage[] {
  return completion.split("<|im_start|>").map((part, i) => {
    const [role, content] =
      i === 0 ? ["assistant", part] : (/^(\w+)\n([\s\S]*)$/.exec(part)?.slice(1) ?? ["user", part]);
    return { role: role as ChatMessage["role"], content: content!.replace(/<\|im_end\|>\n?$/, "") };
  });
}
