import type { JsonSchema } from "@cria/core";
import { repeated } from "./grammar-writer.js";
import type { SchemaWriter } from "./schema-writer.js";
import { readCount } from "./string-grammar.js";

/** All items of a tuple, then as many further items as allowed. */
export function arrayGrammar(grammar: SchemaWriter, schema: JsonSchema, place: string): string {
  const { space } = grammar;
  const least = readCount(schema.minItems, 0);
  const most = readCount(schema.maxItems, Number.POSITIVE_INFINITY);
  if (least > most) grammar.refuse(place, "minItems up to maxItems", `${least} and ${most}`);
  // Before draft 2020-12 the list was called items, and the schema of the rest additionalItems.
  const isOld = Array.isArray(schema.items);
  const [listKey, restKey] = isOld ? ["items", "additionalItems"] : ["prefixItems", "items"];
  const list = Array.isArray(schema[listKey]) ? (schema[listKey] as unknown[]) : [];
  const written = list.slice(0, most).map((item, i) => grammar.write(item, `${place}/${listKey}/${i}`));
  const rest = schema[restKey];
  const missing = Math.max(0, least - written.length);
  const comma = `"," ${space}`;
  const head = written.join(` ${comma} `);
  // A tuple has only its required items, unless the schema describes further ones.
  const isShort = rest === false || most === written.length || (list.length > 0 && rest === undefined && missing === 0);
  if (isShort) {
    if (missing > 0) grammar.refuse(place, "as many items as minItems says", `${written.length}`);
    return ['"["', space, ...(head === "" ? [] : [head, space]), '"]"'].join(" ");
  }
  const item = rest === undefined ? grammar.anyValue() : grammar.write(rest, `${place}/${restKey}`);
  const room = most - written.length;
  if (head !== "") return `"[" ${space} ${head} ${repeated(`(${comma} ${item})`, missing, room)} ${space} "]"`;
  const items = `${item} ${repeated(`(${comma} ${item})`, Math.max(0, missing - 1), room - 1)}`;
  return `"[" ${space} ${missing > 0 ? items : `(${items})?`} ${space} "]"`;
}
