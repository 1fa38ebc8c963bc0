import { refuseField } from "../request-error.js";
import { getOwn, showValue } from "./read-fields.js";

/** Types of parts that hold a text, and the text's key. */
const TEXT_KEYS: Readonly<Record<string, string>> = {
  text: "text",
  input_text: "text",
  output_text: "text",
  summary_text: "text",
  reasoning_text: "text",
  refusal: "refusal",
};

/**
 * The text of a message's content: a text, or a list of parts that hold text.
 * @param separator between the texts of parts.
 * @param field the content's place in the body, for errors.
 * @throws RequestError 400 for a part that is no text.
 */
export function readText(content: unknown, field: string, separator: string): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) throw refuseField(field, "a text, or a list of parts of text", showValue(content));
  return content.map((part: unknown, i) => readPart(part, `${field}.${i}`)).join(separator);
}

/** @throws RequestError 400 for a part that is no text. */
export function readPart(part: unknown, field: string): string {
  if (typeof part === "string") return part;
  const type = getOwn(part, "type");
  const key = typeof type === "string" && Object.hasOwn(TEXT_KEYS, type) ? TEXT_KEYS[type]! : null;
  if (key === null)
    throw refuseField(
      `${field}.type`,
      "text, or an image in a message of a user or a tool",
      showValue(type ?? part),
      "leave audio, video and files out",
    );
  const text = getOwn(part, key);
  if (typeof text !== "string") throw refuseField(`${field}.${key}`, "a text", showValue(text));
  return text;
}
