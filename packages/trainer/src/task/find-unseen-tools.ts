import { contentText } from "@cria/core";
import { agentLoops, type DatasetRow, listToolSchemas } from "@cria/rollout";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "./environment.js";

/** Rows that are looked at: what a template leaves out it leaves out of each. */
const FEW = 16;

/**
 * A warning where the model is not told which tools there are: its chat template lists none, and nor do the rows' own messages.
 * Null when some prompt names a tool, or when conversations have none.
 */
export function findUnseenTools(
  { tokenizer }: Pick<Policy, "tokenizer">,
  { tools, defaultAgentLoop, agentLoops: loops = agentLoops }: Environment,
  rows: readonly DatasetRow[],
): string | null {
  let first: string | undefined;
  for (const row of rows.slice(0, FEW)) {
    const takesTools = loops.find(row.agentName ?? defaultAgentLoop)?.traits.tools ?? false;
    const schemas = takesTools ? listToolSchemas(tools, row) : [];
    if (schemas.length === 0) continue;
    // Images are not read yet, and name no tool.
    const texts = row.prompt.map((message) => ({ ...message, content: contentText(message.content) }));
    const prompt = tokenizer.render(texts, schemas, true);
    if (schemas.some(({ function: { name } }) => prompt.includes(name))) return null;
    first ??= schemas[0]!.function.name;
  }
  if (first === undefined) return null;
  return (
    `the model is not told which tools there are: its chat template lists none, and no prompt names one ("${first}" for example); ` +
    "list them in the rows' system messages, with their arguments and with how a call is written (multi_turn.format)"
  );
}
