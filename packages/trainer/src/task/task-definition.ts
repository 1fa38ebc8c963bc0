import type { ChatMessage, ContentPart, FinishReason, LoadedImage } from "@cria/core";
import type { AgentContext, AgentResult, DatasetRow, RewardResult } from "@cria/rollout";
import type { BaseInteraction, InteractionDefinition, ToolFormatName, ToolListItem } from "@cria/tools";

/** A function of one argument, typed like a method, so that a task of narrower rows is also a task of any rows. */
type Of<Argument, Result> = { of(argument: Argument): Result }["of"];

/** A row for rollouts, made from a task's row by `task.load` and `task.batches`. It contains the task's row. */
export interface TaskRow<Row extends object = object> extends DatasetRow {
  extraInfo: DatasetRow["extraInfo"] & { row: Row };
}

/** An ended conversation, as passed to a task's reward. */
export interface Episode<Row> {
  /** The model's final answer: the text after the last "####" of its last message, else the whole message. */
  answer: string;
  /** All text of the model, over all turns. */
  text: string;
  /** A copy of the task's row: changing it affects no other conversation. For rows of a file it is a `DatasetRow`. */
  row: Row;
  /** The whole conversation, the prompt included. */
  messages: readonly ChatMessage[];
  /** Images of the conversation, of the prompt, tools and users, in order. */
  images: readonly LoadedImage[];
  /** Assistant turns plus the turns of tools and users after the prompt. */
  turns: number;
  finishReason: FinishReason;
  /** Sum of the tools' rewards; null if no tool has one. */
  toolScore: number | null;
  /** The interaction's score; null if there is none. */
  interactionScore: number | null;
}

/**
 * Judges an episode: a number, true or false for 1 or 0, or `{ score, ...extra }`, whose numeric extras become
 * metrics. If it throws, the conversation counts as failed and is not trained on.
 */
export type TaskReward<Row> = Of<Episode<Row>, RewardResult | boolean | Promise<RewardResult | boolean>>;

/**
 * A message of a prompt. A part `{ type: "image" }` without a source, and each `<image>` in a text, stand for the
 * next of the row's `images`.
 */
export interface PromptMessage extends Omit<ChatMessage, "content"> {
  content: string | readonly PromptPart[];
}

/** `image`: bytes, a web address or a data address; a text with a `mediaType` is base64, any other text a path. */
export type PromptPart = ContentPart | { type: "image"; image?: Uint8Array | URL | string; mediaType?: string };

export interface TaskDefinition<Row extends object = DatasetRow> {
  /**
   * The rows: your own values, rows of `loadDataset`, or files of rows (Parquet, JSONL, JSON) and datasets of a hub
   * (hf:<owner>/<set>/<config>/<split>). A row's prompt comes from `prompt`, else from its own `prompt`, `messages`
   * or `question`, each a text or messages. A row's `images` (bytes, paths, data addresses, or a list of them)
   * replace each `<image>` in the prompt.
   */
  rows: readonly Row[] | string | readonly string[];
  /**
   * Makes the prompt of a row: a text for a user's message, or messages, which may contain images in the form of the
   * AI SDK. Default: the row's own prompt.
   */
  prompt?: Of<Row, string | readonly PromptMessage[]>;
  /** System message for prompts that have none. Default: none. */
  system?: string;
  /**
   * Your program, which calls the policy itself; replaces prompt, system message, tools and interaction. The policy
   * is its `model`. Its result is the reward, unless `reward` is given.
   */
  agent?: Of<AgentContext<Row>, AgentResult | Promise<AgentResult>>;
  /** `tool()`s, tools of the AI SDK, MCP servers (`mcpServer`), or a YAML file of tools. Default: none. */
  tools?: readonly ToolListItem<Row>[] | string;
  /** Replies as a user: `interaction(...)`, a function, or a YAML file of interactions. Default: none. */
  interaction?: BaseInteraction | InteractionDefinition<undefined>["reply"] | string;
  /**
   * Judges an episode, by function or by path ("./reward.ts#score", as in a config). Default: tools, the
   * interaction, or the reward of the row's `data_source`.
   */
  reward?: TaskReward<Row> | string;
  /** The right answer, shown in dumps and available to interactions. Default: the row's `truth` or `answer`. */
  truth?: Of<Row, unknown>;
  /**
   * Returns the number of conversations of a row, from 1 to 4096, for example by its difficulty; undefined: the run's
   * number (`n`). Default: the row's `__rollout_n__`.
   */
  samples?: Of<Row, number | undefined>;
  /** `data_source` of the rows that have none; metrics are grouped by it. Default "task". */
  name?: string;
  /**
   * Tool-call format of the model: a format's name, or "./module.ts#parse"; default: the one that its chat template
   * prints.
   */
  toolFormat?: ToolFormatName;
  /** Maximum number of assistant turns in a conversation, at least 1; default: as many as its tokens allow. */
  maxTurns?: number;
  /** Maximum number of tokens of a prompt; default 512. */
  maxPromptLength?: number;
  /** Maximum number of tokens after the prompt, over all turns; default 512. */
  maxResponseLength?: number;
}
