import { contentText } from "@cria/core";
import { agentLoops, type DatasetRow } from "@cria/rollout";
import { listToolSchemas } from "@cria/rollout/internal";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "./environment.js";

/** Number of rows to check: a template that omits tools omits them for every row. */
const FEW = 16;

/**
 * Warns if the model is not told which tools there are: its chat template lists none, and neither do the rows' own
 * messages. Null if some prompt names a tool, or if conversations have no tools.
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
    // Images are not loaded yet, and name no tool.
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
