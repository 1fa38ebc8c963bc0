import { PYTHON_TARGET, pythonReason } from "../verl/foreign-keys.js";
import { describeStreamedKeys } from "../verl/streamed-training.js";
import { describeMovedKeys, listNullableKeys, listUnboundedKeys } from "../verl/translate-values.js";
import { verlKeys } from "../verl/verl-keys.js";
import { frozenKeys } from "../verl/vision-keys.js";
import { allowNull, findMapping, findNode, type JsonNode, visit } from "./make-json-schema.js";

/**
 * Makes a config's schema accept other frameworks' configs as `loadConfig` does: keys without effect, with the
 * reason as a warning; other names of keys; and keys of missing features, with the values that ask for nothing else
 * than what happens anyway.
 */
export function addForeignKeys(root: JsonNode): void {
  for (const key of listNullableKeys()) {
    const node = findNode(root, key);
    if (node) allowNull(node);
  }
  for (const key of listUnboundedKeys()) delete findNode(root, key)?.maximum;
  const taken = { ...describeMovedKeys(), ...describeStreamedKeys() };
  // Other names are copies of their keys, made before these get further keys.
  const rows = Object.entries(verlKeys);
  for (const [key, entry] of rows) if ("alias" in entry) addOtherName(root, key, entry.alias);
  for (const [key, entry] of rows) {
    if ("nothing" in entry) addKey(root, key, { deprecationMessage: `has no effect: ${entry.nothing}` });
    else if (!("alias" in entry) && !Object.keys(taken).some((other) => `${other}.`.startsWith(`${key}.`)))
      addPendingKey(root, key, "only" in entry ? entry.only : null);
  }
  for (const [key, description] of Object.entries(taken)) addKey(root, key, { description, doNotSuggest: true });
  // Hydra's names of Python classes, which any section may have.
  visit(root, ({ properties, additionalProperties }) => {
    if (properties && additionalProperties === false)
      properties[PYTHON_TARGET] ??= { deprecationMessage: `has no effect: ${pythonReason}` };
  });
}

function addOtherName(root: JsonNode, key: string, alias: string): void {
  const target = findNode(root, alias);
  if (!target) return;
  const node = structuredClone(target);
  allowNull(node);
  delete node.default;
  const description = `Another name of ${alias}. ${target.description ?? ""}`.trim();
  addKey(root, key, { ...node, description, doNotSuggest: true });
  allowInstead(root, alias, key);
}

function addPendingKey(root: JsonNode, key: string, accepted: readonly unknown[] | null): void {
  // For a model without a projector any value is accepted, which a schema cannot express.
  const isFrozen = (frozenKeys as readonly string[]).includes(key);
  const values = accepted && !isFrozen ? { enum: [...accepted] } : {};
  const description = `Not supported yet${accepted ? `, but for ${accepted.map((value) => JSON.stringify(value)).join(" or ")}` : ""}.`;
  addKey(root, key, { ...values, description, doNotSuggest: true });
}

/** Accepts another name of a required key in the same section instead of the key. */
function allowInstead(root: JsonNode, key: string, other: string): void {
  const [section, name] = splitKey(key);
  const [otherSection, otherName] = splitKey(other);
  const node = section === "" ? root : findNode(root, section);
  if (section !== otherSection || !node?.required?.includes(name)) return;
  node.required = node.required.filter((each) => each !== name);
  node.anyOf = [{ required: [name] }, { required: [otherName] }];
}

function splitKey(key: string): [section: string, name: string] {
  const dot = key.lastIndexOf(".");
  return [key.slice(0, Math.max(0, dot)), key.slice(dot + 1)];
}

/** Adds a key, and missing sections above it. A key below a section that was added earlier only extends it. */
function addKey(root: JsonNode, key: string, node: JsonNode): void {
  const parts = key.split(".");
  const last = parts.pop()!;
  let section = root;
  for (const part of parts) {
    const mapping = findMapping(section);
    if (!mapping) return;
    // A key of a mapping of any names has what each of them may have.
    mapping.properties![part] ??=
      typeof mapping.additionalProperties === "object"
        ? structuredClone(mapping.additionalProperties)
        : { type: "object", properties: {}, additionalProperties: false, doNotSuggest: true };
    section = mapping.properties![part];
    section.properties ??= section.anyOf ? undefined : {};
  }
  const mapping = findMapping(section);
  if (!mapping) return;
  const present = mapping.properties![last];
  if (present === undefined) mapping.properties![last] = node;
  else if (present.doNotSuggest && present.properties) {
    // A section with some known keys, in which all other keys are accepted.
    visit(present, (inner) => {
      if (!inner.properties) return;
      delete inner.type;
      delete inner.additionalProperties;
    });
    Object.assign(present, node);
  }
}
