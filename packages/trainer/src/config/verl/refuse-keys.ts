import { ConfigError } from "@cria/core";
import { type FindPlace, namePlace } from "../check-config.js";
import type { Refusal } from "./foreign-keys.js";

/** @throws ConfigError that names all keys which ask for missing features. */
export function refuseKeys(refusals: readonly Refusal[], file: string, findPlace: FindPlace = () => undefined): void {
  const [first] = refusals;
  if (!first) return;
  const list = (refusal: Refusal) => refusal.accepted.map((entry) => JSON.stringify(entry)).join(" or ");
  if (refusals.length === 1)
    throw new ConfigError("is not supported yet", {
      code: "config/not-supported",
      subject: namePlace(first.key, file, findPlace),
      expected: list(first),
      received: JSON.stringify(first.received),
      remedy: ["remove the key, or set it to the expected value", first.remedy].filter(Boolean).join("; "),
    });
  throw new ConfigError(`has ${refusals.length} keys of what is not supported yet`, {
    code: "config/not-supported",
    subject: file,
    expected: refusals.map((refusal) => `\n    ${refusal.key}: ${list(refusal)}`).join(""),
    received: refusals.map(({ key, received }) => `\n    ${key}: ${JSON.stringify(received)}`).join(""),
    remedy: "remove these keys, or set them to the expected values",
  });
}
