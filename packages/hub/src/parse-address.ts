import { HubError } from "@cria/core";

/** The meaning of an `hf:` address: a repository, and something in it. */
export interface Address {
  /** The original text. */
  text: string;
  /** owner/name. */
  repository: string;
  /** For models: the text after the colon, such as Q8_0. */
  quantization: string | null;
  /** The text after the repository: a file's path, or config and split of a dataset. */
  parts: string[];
  /** A branch, a tag or a commit; null: main. */
  revision: string | null;
}

const PATTERN =
  /^hf:(?:\/\/)?(?<repository>[\w.-]+\/[\w.-]+)(?::(?<quantization>[\w.-]+)|\/(?<path>[^@:]+))?(?:@(?<revision>[\w./-]+))?$/i;

/** True if a text is an address and not a path. */
export function isAddress(text: string): boolean {
  return /^hf:/i.test(text);
}

/** @param form the expected form, for the error. @throws HubError when the text has another form. */
export function parseAddress(text: string, form: string): Address {
  const found = PATTERN.exec(text)?.groups;
  const parts = found?.path?.split("/") ?? [];
  // Names come from users and are used in paths.
  const isSafe = [found?.repository, found?.path, found?.revision].every(
    (name) => !name?.split("/").some((part) => part === "" || part === "." || part === ".."),
  );
  if (found && isSafe) {
    return {
      text,
      repository: found.repository!,
      quantization: found.quantization ?? null,
      parts,
      revision: found.revision ?? null,
    };
  }
  throw new HubError("is not an address", {
    code: "hub/bad-address",
    subject: text,
    expected: form,
    received: text,
  });
}
