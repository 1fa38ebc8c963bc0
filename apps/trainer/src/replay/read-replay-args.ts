import { ConfigError } from "@cria/core";
import type { Replay } from "@cria/trainer";

/** A token of a conversation, and its replacement: a text, or a token id. */
export interface TokenEdit {
  token: number;
  replacement: string | number;
}

/** @param text `57=+` or `57=1234`. @throws ConfigError */
export function readEdit(text: string): TokenEdit {
  const [, index, given] = /^(\d+)=([\s\S]+)$/.exec(text) ?? [];
  if (index === undefined || given === undefined)
    throw refuse("--edit", 'a token\'s index, "=", and a text or the id of a token: 57=+, 57=1234, 57="7"', text);
  const quoted = /^"([\s\S]+)"$/.exec(given)?.[1];
  return { token: Number(index), replacement: quoted ?? (/^\d+$/.test(given) ? Number(given) : given) };
}

/**
 * The token that an edit puts there.
 * @throws ConfigError for a text of several tokens.
 */
export function resolveReplacement(replacement: string | number, replay: Pick<Replay, "tokenize" | "engine">): number {
  if (typeof replacement === "number") return replacement;
  const ids = [...replay.tokenize(replacement)];
  if (ids.length === 1) return ids[0]!;
  const parts = ids.map((id) => `${id} ${JSON.stringify(replay.engine.detokenize([id]))}`);
  throw refuse("--edit", "a text of one token", `${JSON.stringify(replacement)}: ${parts.join(", ") || "none"}`);
}

/** @throws ConfigError for a text that is no whole number. */
export function readNumber(option: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw refuse(option, "a whole number of at least 0", text);
}

function refuse(subject: string, expected: string, received: string): ConfigError {
  return new ConfigError("has a wrong value", { code: "config/bad-argument", subject, expected, received });
}
