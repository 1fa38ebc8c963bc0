import { z } from "zod";

/** An entry of the file `agent.agent_loop_config_path`. */
export const agentLoopEntrySchema = z.strictObject({
  name: z.string().describe("Name for agent_name of rows and for agent.default_agent_loop."),
  class_name: z
    .string()
    .optional()
    .describe('"./my-loop.ts#MyLoop": a class that is made for each conversation, or a function that makes a loop.'),
  agent: z
    .string()
    .optional()
    .describe(
      'Instead of class_name, "./my-agent.ts#agent": a function of { row, model, signal } that calls the policy by itself; its result is the reward.',
    ),
  command: z
    .array(z.string())
    .min(1)
    .optional()
    .describe(
      'Instead of class_name, a program in any language, such as ["python3", "agent.py"]: started once an episode in the folder of this file, with OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, CRIA_MODEL and CRIA_ROW_FILE, and the row as JSON on standard input. Its reward is posted to $CRIA_SESSION_URL/reward, or the last line of its output: {"reward": 0.5}.',
    ),
  config: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("Options for the class or function, in addition to its context."),
  tools: z.boolean().optional().describe("true (the default): its prompts describe the tools."),
});
