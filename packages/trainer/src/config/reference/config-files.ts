import { interactionEntrySchema, toolEntrySchema } from "@cria/tools/internal";
import { z } from "zod";
import { agentLoopEntrySchema } from "../sections/agent-loops-config.js";
import { sftConfigSchema } from "../sft-config.js";
import { trainConfigSchema } from "../train-config.js";
import { addForeignKeys } from "./add-foreign-keys.js";
import { type JsonNode, makeJsonSchema } from "./make-json-schema.js";

/** A kind of YAML file that Cria reads. */
export interface ConfigFile {
  /** Name of its JSON Schema, schema/<name>.json, and of the kind in `cria config --of`. */
  name: string;
  title: string;
  schema: z.ZodObject;
  /** Key of the list of entries in the file; null: the whole file is one entry. */
  list: string | null;
}

export const configFiles: readonly ConfigFile[] = [
  { name: "train", title: "Config of `cria train`", schema: trainConfigSchema, list: null },
  { name: "sft", title: "Config of `cria sft`", schema: sftConfigSchema, list: null },
  {
    name: "tools",
    title: "Tools, the file of `actor_rollout_ref.rollout.multi_turn.tool_config_path`",
    schema: toolEntrySchema,
    list: "tools",
  },
  {
    name: "interactions",
    title: "Interactions, the file of `actor_rollout_ref.rollout.multi_turn.interaction_config_path`",
    schema: interactionEntrySchema,
    list: "interaction",
  },
  {
    name: "agent-loops",
    title: "Agent loops, the file of `actor_rollout_ref.rollout.agent.agent_loop_config_path`",
    schema: agentLoopEntrySchema,
    list: "agent_loops",
  },
];

/** The JSON Schema of such a file, for editors and validators. */
export function makeFileSchema({ schema, title, list }: ConfigFile): JsonNode {
  const root = makeJsonSchema(list === null ? schema : z.object({ [list]: z.array(schema) }));
  if (list === null) addForeignKeys(root);
  else acceptListForms(root, list);
  return { $schema: root.$schema, title: title.replaceAll("`", ""), ...root };
}

/** Also accepts the bare list without its key, and entries that name a Python class by Hydra's _target_. */
function acceptListForms(root: JsonNode, list: string): void {
  const entries = root.properties![list]!;
  const entry = entries.items as JsonNode;
  entry.properties!._target_ = { ...entry.properties!.class_name, doNotSuggest: true };
  const required = entry.required?.filter((key) => key !== "class_name") ?? [];
  delete entry.required;
  const others = required.length > 0 ? { required } : {};
  // Keys with which an entry may name its implementation.
  const alternatives = ["class_name", "_target_", "agent", "command"].filter((key) => key in entry.properties!);
  entry.anyOf = alternatives.map((key) => ({ required: [key] }));
  Object.assign(entry, others);
  const mapping: JsonNode = { type: root.type, properties: root.properties, required: root.required };
  for (const key of ["type", "properties", "required", "additionalProperties"] as const) delete root[key];
  root.anyOf = [mapping, structuredClone(entries)];
}
