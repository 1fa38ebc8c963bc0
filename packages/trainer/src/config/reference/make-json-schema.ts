import { z } from "zod";

/** The part of JSON Schema (draft 7) that is written here, with what YAML editors know beside it. */
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
  /** VS Code's and yaml-language-server's: a warning at the key, which is then not suggested. */
  deprecationMessage?: string;
  /** VS Code's and yaml-language-server's: right, but not suggested. */
  doNotSuggest?: boolean;
}

/** Marks a list of which one entry may stand for it, while the schema is made. */
const ONE_FOR_LIST = "oneForList";

/** JSON Schema of what a config file may hold: defaults may be left out, and values are as they are before any change. */
export function makeJsonSchema(schema: z.ZodType): JsonNode {
  const root = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    // z.preprocess takes anything; what it is for is said below.
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => complete(zodSchema as unknown as z.ZodType, jsonSchema),
  }) as JsonNode;
  visit(root, allowOneForList);
  return root;
}

function complete(schema: z.ZodType, node: z.core.JSONSchema.BaseSchema): void {
  if (schema instanceof z.ZodDefault) node.default = schema.def.defaultValue as z.core.util.JSONType;
  // Sections: each of their keys says its own default.
  if (schema instanceof z.ZodPrefault) delete node.default;
  // z.preprocess stands where one entry is taken for a list of it, and null for none perhaps.
  if (schema instanceof z.ZodPipe && schema.def.in instanceof z.ZodTransform)
    node[ONE_FOR_LIST] = schema.safeParse(null).success ? ["null"] : [];
  // Whole numbers are bounded by what is exact, which nobody needs to be told.
  if (Math.abs(node.minimum ?? 0) >= Number.MAX_SAFE_INTEGER) delete node.minimum;
  if (Math.abs(node.maximum ?? 0) >= Number.MAX_SAFE_INTEGER) delete node.maximum;
}

/** Calls `change` for each node, those inside first. */
export function visit(node: JsonNode, change: (node: JsonNode) => void): void {
  const items = node.items === undefined ? [] : [node.items].flat();
  for (const child of [...Object.values(node.properties ?? {}), ...(node.anyOf ?? []), ...items]) visit(child, change);
  change(node);
}

function allowOneForList(node: JsonNode & { [ONE_FOR_LIST]?: string[] }): void {
  const { [ONE_FOR_LIST]: others, type, items, ...rest } = node;
  if (!others) return;
  for (const key of [ONE_FOR_LIST, "type", "items"] as const) delete node[key];
  // A copy: other frameworks' keys are taken in the one form only.
  const forms = [structuredClone(items as JsonNode), { type, items }, ...others.map((name) => ({ type: name }))];
  Object.assign(node, rest, { anyOf: forms });
}

/** The mapping with this key's section, through lists of which it may be the only entry. */
export function findMapping(node: JsonNode): JsonNode | undefined {
  return node.properties ? node : node.anyOf?.map(findMapping).find(Boolean);
}

/** The schema of a dotted key; undefined when there is none. */
export function findNode(root: JsonNode, key: string): JsonNode | undefined {
  return key
    .split(".")
    .reduce<JsonNode | undefined>((node, part) => node && findMapping(node)?.properties?.[part], root);
}

/** Lets a key also be null. */
export function allowNull(node: JsonNode): void {
  if (node.anyOf) node.anyOf.push({ type: "null" });
  else if (node.type !== undefined) node.type = [...new Set([node.type, "null"].flat())];
  if (node.enum) node.enum.push(null);
}
