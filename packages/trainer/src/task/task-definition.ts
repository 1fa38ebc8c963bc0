import type { ChatMessage, ContentPart, FinishReason, LoadedImage } from "@cria/core";
import type { AgentContext, AgentResult, DatasetRow, RewardResult } from "@cria/rollout";
import type { BaseInteraction, InteractionDefinition, ToolFormatName, ToolListItem } from "@cria/tools";

/** A function of one argument, typed as a method is, so that a task of narrower rows still is a task of any rows. */
type Of<Argument, Result> = { of(argument: Argument): Result }["of"];

/** A row as rollouts take it: `task.load` and `task.batches` make it of a task's row, which it holds. */
export interface TaskRow<Row extends object = object> extends DatasetRow {
  extraInfo: DatasetRow["extraInfo"] & { row: Row };
}

/** A conversation that is over, as a task's reward sees it. */
export interface Episode<Row> {
  /** What the model answered in the end: what follows the last "####" of its last message, else that whole message. */
  answer: string;
  /** All that the model wrote, over all turns. */
  text: string;
  /** A copy of the task's row: changing it affects no other conversation. For rows of a file it is a `DatasetRow`. */
  row: Row;
  /** The whole conversation, the prompt included. */
  messages: readonly ChatMessage[];
  /** Its images, the prompt's and those of tools and users, in their order. */
  images: readonly LoadedImage[];
  /** Assistant turns plus the turns of tools and users after the prompt. */
  turns: number;
  finishReason: FinishReason;
  /** Sum over the tools of their rewards; null when no tool has one. */
  toolScore: number | null;
  /** The interaction's score; null when there was none. */
  interactionScore: number | null;
}

/**
 * Judges an episode: a number, true or false for 1 or 0, or `{ score, ...extra }`, whose numbers become metrics. One that throws
 * has not judged it: the conversation then failed and teaches nothing.
 */
export type TaskReward<Row> = Of<Episode<Row>, RewardResult | boolean | Promise<RewardResult | boolean>>;

/** A message of a prompt. A part `{ type: "image" }` alone, and `<image>` in a text, are the next of the row's `images`. */
export interface PromptMessage extends Omit<ChatMessage, "content"> {
  content: string | readonly PromptPart[];
}

/** `image`: bytes, an address or a data address; a text with a `mediaType` is base64, another one a path. */
export type PromptPart = ContentPart | { type: "image"; image?: Uint8Array | URL | string; mediaType?: string };

export interface TaskDefinition<Row extends object = DatasetRow> {
  /**
   * What is asked: values of your own, rows of `loadDataset`, or files of rows (Parquet, JSONL, JSON) and sets of a hub
   * (hf:<owner>/<set>/<config>/<split>). A row's prompt is what `prompt` says of it, else its `prompt`, `messages` or `question`,
   * each a text or messages. A row's `images` (bytes, paths, data addresses, or a list of them) stand where these say `<image>`.
   */
  rows: readonly Row[] | string | readonly string[];
  /**
   * What is asked of a row: a text for a user's message, or messages, which may hold images by themselves, as those of the AI SDK
   * do. Default: what the row has.
   */
  prompt?: Of<Row, string | readonly PromptMessage[]>;
  /** Stands before each prompt that has no system message. Default: none. */
  system?: string;
  /**
   * A program of yours that calls the policy by itself, in place of prompt, system message, tools and interaction: the policy is
   * its `model`. Its result is the reward, unless `reward` judges.
   */
  agent?: Of<AgentContext<Row>, AgentResult | Promise<AgentResult>>;
  /** `tool()`s, tools of the AI SDK, MCP servers (`mcpServer`), or a YAML file of tools. Default: none. */
  tools?: readonly ToolListItem<Row>[] | string;
  /** Answers of a user: `interaction(...)`, a function that replies, or a YAML file of interactions. Default: none. */
  interaction?: BaseInteraction | InteractionDefinition<undefined>["reply"] | string;
  /** Default: tools, the interaction, or the row's `data_source` judge. By path: "./reward.ts#score", as a config has it. */
  reward?: TaskReward<Row> | string;
  /** What dumps show as the right answer, and interactions may use. Default: the row's `truth` or `answer`. */
  truth?: Of<Row, unknown>;
  /** `data_source` of the rows that have none; metrics are grouped by it. Default "task". */
  name?: string;
  /** How the model writes tool calls: the name of a parser, or "./module.ts#parse"; default: as its chat template prints them. */
  toolFormat?: ToolFormatName;
  /** Most turns of the model in a conversation, at least 1; default: as many as its tokens allow. */
  maxTurns?: number;
  /** Most tokens of a prompt; default 512. */
  maxPromptLength?: number;
  /** Most tokens after the prompt, over all turns; default 512. */
  maxResponseLength?: number;
}
