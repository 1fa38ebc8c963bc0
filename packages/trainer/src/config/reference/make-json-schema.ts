import { z } from "zod";

/** The part of JSON Schema (draft 7) that is used here, with extensions of YAML editors. */
export interface JsonNode {
  $schema?: string;
  title?: string;
  description?: string;
  type?: string | string[];
  default?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  anyOf?: JsonNode[];
  items?: JsonNode | JsonNode[];
  properties?: Record<string, JsonNode>;
  required?: string[];
  additionalProperties?: boolean | JsonNode;
  /** Extension of VS Code and yaml-language-server: a warning at the key, which is then not suggested. */
  deprecationMessage?: string;
  /** Extension of VS Code and yaml-language-server: valid, but not suggested. */
  doNotSuggest?: boolean;
}

/** Marks a list that a single entry may replace, while the schema is built. */
const ONE_FOR_LIST = "oneForList";

/**
 * JSON Schema of a config file's content: keys with defaults are optional, and values are those before any
 * transformation.
 */
export function makeJsonSchema(schema: z.ZodType): JsonNode {
  const root = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    // z.preprocess accepts anything; its uses are handled below.
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => complete(zodSchema as unknown as z.ZodType, jsonSchema),
  }) as JsonNode;
  visit(root, allowOneForList);
  return root;
}

function complete(schema: z.ZodType, node: z.core.JSONSchema.BaseSchema): void {
  if (schema instanceof z.ZodDefault) node.default = schema.def.defaultValue as z.core.util.JSONType;
  // Sections: each of their keys has its own default.
  if (schema instanceof z.ZodPrefault) delete node.default;
  // z.preprocess is used to accept one entry instead of a list, and sometimes null instead of an empty one.
  if (schema instanceof z.ZodPipe && schema.def.in instanceof z.ZodTransform)
    node[ONE_FOR_LIST] = schema.safeParse(null).success ? ["null"] : [];
  // Bounds of safe integers are of no use to a reader.
  if (Math.abs(node.minimum ?? 0) >= Number.MAX_SAFE_INTEGER) delete node.minimum;
  if (Math.abs(node.maximum ?? 0) >= Number.MAX_SAFE_INTEGER) delete node.maximum;
}

/** Calls `change` for each node, inner nodes first. */
export function visit(node: JsonNode, change: (node: JsonNode) => void): void {
  const items = node.items === undefined ? [] : [node.items].flat();
  for (const child of [...Object.values(node.properties ?? {}), ...(node.anyOf ?? []), ...items]) visit(child, change);
  change(node);
}

function allowOneForList(node: JsonNode & { [ONE_FOR_LIST]?: string[] }): void {
  const { [ONE_FOR_LIST]: others, type, items, ...rest } = node;
  if (!others) return;
  for (const key of [ONE_FOR_LIST, "type", "items"] as const) delete node[key];
  // A copy: other frameworks' keys are accepted in one form only.
  const forms = [structuredClone(items as JsonNode), { type, items }, ...others.map((name) => ({ type: name }))];
  Object.assign(node, rest, { anyOf: forms });
}

/** The mapping of a key's section; descends into lists that a single entry may replace. */
export function findMapping(node: JsonNode): JsonNode | undefined {
  return node.properties ? node : node.anyOf?.map(findMapping).find(Boolean);
}

/** The schema of a dotted key; undefined if there is none. */
export function findNode(root: JsonNode, key: string): JsonNode | undefined {
  return key
    .split(".")
    .reduce<JsonNode | undefined>((node, part) => node && findMapping(node)?.properties?.[part], root);
}

/** Makes a key accept null. */
export function allowNull(node: JsonNode): void {
  if (node.anyOf) node.anyOf.push({ type: "null" });
  else if (node.type !== undefined) node.type = [...new Set([node.type, "null"].flat())];
  if (node.enum) node.enum.push(null);
}
