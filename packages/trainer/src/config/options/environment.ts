import { agentLoops } from "@cria/rollout";
import { z } from "zod";
import { multiTurnOptions } from "./multi-turn.js";
import { rewardOptions } from "./rewards.js";

/** Sources and limits of the images of rows, tools and interactions. */
export const imageOptions = z.strictObject({
  fetchImages: z
    .boolean()
    .default(false)
    .describe("Images that rows and your own tools name by an address are fetched; false: they are refused."),
  imageMaxBytes: z
    .int()
    .positive()
    .default(20 * 1024 * 1024)
    .describe("Most bytes of an image's file, in rows and in answers of tools."),
  imageMaxPixels: z
    .int()
    .positive()
    .default(4096 * 4096)
    .describe("Most pixels of an image, width times height; a larger one is refused before it is decoded."),
});

/** Agent loops, and limits of agents that call the policy themselves. */
export const agentOptions = z.strictObject({
  defaultAgentLoop: z
    .string()
    .default("tool_agent")
    .meta({ description: "The loop of rows that name none (agent_name).", examples: agentLoops.names() }),
  agentLoopConfigPath: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of your own loops: agent_loops: [{ name, class_name, config? }]."),
  timeoutS: z
    .number()
    .positive()
    .nullable()
    .default(600)
    .describe(
      "Time limit of an agent's episode, in seconds, for agents that call the policy themselves. An episode that exceeds it has failed. null: no limit.",
    ),
  maxCalls: z
    .int()
    .positive()
    .default(100)
    .describe(
      "Most calls of the policy in such an episode; multi_turn.max_assistant_turns overrides this. A further call ends the episode.",
    ),
});

/** Tools, users, rewards and limits of conversations. `openEnvironment` opens them. */
export const environmentOptions = z.strictObject({
  toolConfigPath: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of tools: tools: [{ class_name, config?, tool_schema? }]."),
  interactionConfigPath: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of interactions: interaction: [{ name?, class_name, config? }]."),
  hasInteractions: z.boolean().default(true).describe("false: rows that name an interaction have none."),
  multiTurn: multiTurnOptions.prefault({}),
  stop: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat())
    .refine((texts) => texts.every((text) => text !== ""), "texts that are not empty")
    .default([])
    .describe(
      "Texts that end a turn, in training and validation. The text stays in the turn and is trained on. The end-of-turn token then comes with the next message, and is not trained on.",
    ),
  maxTokensPerTurn: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      "Maximum number of tokens of one turn, in training and validation. null: the rest of the response. A cut turn ends the conversation, unless it has a complete tool call or an interaction is due.",
    ),
  maxPromptLength: z.int().positive().default(512).describe("Most tokens of a prompt."),
  maxResponseLength: z.int().positive().default(512).describe("Most tokens after the prompt, over all turns."),
  truncation: z
    .enum(["error", "left", "right", "middle"])
    .default("error")
    .describe(
      "Handling of longer prompts that are not filtered: error ends the run; left, right and middle name the part to cut.",
    ),
  returnFullPrompt: z
    .boolean()
    .default(false)
    .describe("The rendered prompt goes to reward functions (extraInfo.full_prompt) and into dumps."),
  images: imageOptions.prefault({}),
  agent: agentOptions.prefault({}),
  branchCredit: z
    .enum(["last_branch", "all_branches", "nodes", "multi_trajectories"])
    .default("all_branches")
    .describe(
      "Answers that learn from an episode's reward, if an agent held several conversations or changed its history. last_branch: those of the conversation whose answer came last. all_branches: all. nodes: all, each by the episode's reward and the rewards of this answer and of later ones. multi_trajectories: all, by the reward of the conversation whose answer came last, as verl credits several trajectories.",
    ),
  trainOnConstrainedTokens: z
    .boolean()
    .default(false)
    .describe("Train also on tokens whose choice a grammar (structured output, a required call) restricted."),
  onFailure: z
    .enum(["drop", "refill", "error"])
    .default("drop")
    .describe(
      "Handling of a conversation that its environment or a judge breaks: an interaction or agent loop that throws, a reward function, reward model, calculateScore or calcReward that throws or takes too long. drop: the conversation is left out of its group, of statistics and of updates. refill: it is sampled again, three times at most, then dropped. error: the run ends. Faults of the policy (a bad call, its program's time-out, too long an answer, turns used up) are always scored. A step in which every conversation failed ends the run.",
    ),
  rewards: rewardOptions.prefault({}),
  tracing: z
    .enum(["off", "otel"])
    .default("off")
    .describe(
      "otel: a trace of each episode, with spans of its turns and tool calls, goes to the program's OpenTelemetry SDK (docs/tracing.md). It needs the package @opentelemetry/api.",
    ),
});

export type EnvironmentOptions = z.infer<typeof environmentOptions>;
