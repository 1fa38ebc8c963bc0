import { z } from "zod";

/** An entry of the file that `agent.agent_loop_config_path` names. */
export const agentLoopEntrySchema = z.strictObject({
  name: z.string().describe("What agent_name of rows and agent.default_agent_loop call it."),
  class_name: z
    .string()
    .describe('"./my-loop.ts#MyLoop": a class that is made for each conversation, or a function that makes a loop.'),
  config: z.record(z.string(), z.unknown()).optional().describe("What the class or function gets beside its context."),
  tools: z.boolean().optional().describe("Whether its prompts describe the tools; else true."),
});
