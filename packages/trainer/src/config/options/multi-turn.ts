import { toolFormats } from "@cria/tools";
import { z } from "zod";

/** `MultiTurnOptions` of a conversation: order and limits of its turns. */
export const multiTurnOptions = z.strictObject({
  maxAssistantTurns: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most turns of the model in a conversation; null: as many as its tokens allow."),
  maxUserTurns: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most answers of tools and of the interaction, together; null: as many as the tokens allow."),
  interactionInterval: z
    .int()
    .positive()
    .default(1)
    .describe("An interaction answers when the number of assistant turns is a multiple of this."),
  interactionProb: z.number().min(0).max(1).default(1).describe("Probability that it then answers."),
  maxParallelCalls: z
    .int()
    .positive()
    .default(1)
    .describe("Most tool calls of one turn that are run; the others get an error to read."),
  maxToolResponseLength: z.int().positive().default(256).describe("Most tokens of a tool's answer; the rest is cut."),
  maxToolResponseChars: z
    .int()
    .min(0)
    .default(0)
    .describe("Most characters of a tool's answer, before its tokens are counted; 0: no limit."),
  toolResponseTruncateSide: z
    .enum(["left", "middle", "right"])
    .default("middle")
    .describe("Part of a tool's answer to cut."),
  format: z.string().default("hermes").meta({
    description: 'How the model writes tool calls: a parser\'s name, or "./module.ts#parse".',
    examples: toolFormats.names(),
  }),
  tokenizationSanityCheckMode: z
    .enum(["strict", "ignore_strippable", "disable"])
    .default("strict")
    .describe(
      "Compare each conversation's tokens with a rendering of the whole conversation: exactly, except for white space, or not at all.",
    ),
  toolTimeoutS: z
    .number()
    .positive()
    .default(30)
    .describe(
      "Seconds for each call of a tool or an interaction; the time that it waits for a sandbox does not count.",
    ),
  useInferenceChatTemplate: z
    .boolean()
    .default(false)
    .describe("Render each turn as the chat template does in production, which may rewrite earlier turns."),
  trainOnToolCalls: z.boolean().default(true).describe("false: the text of tool calls is not trained on."),
});
