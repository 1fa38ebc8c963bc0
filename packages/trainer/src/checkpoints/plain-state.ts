import { DataError } from "@cria/core";

/**
 * Copies the state of a user's sampler for checkpoints, because the sampler may change it in place.
 * @param name the sampler's name in errors.
 * @throws DataError when JSON cannot represent the state: a resumed run would differ.
 */
export function copyPlain(state: unknown, name: string): unknown {
  let problem: string | null = null;
  let copy: unknown;
  try {
    copy = JSON.parse(
      JSON.stringify(state, (key, value: unknown) => {
        const isPlain =
          value === null ||
          Array.isArray(value) ||
          typeof value === "string" ||
          typeof value === "boolean" ||
          (typeof value === "number" && Number.isFinite(value)) ||
          (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value)));
        if (!isPlain) problem ??= `${key === "" ? "" : `${key}: `}${describeKind(value)}`;
        return value;
      }),
    );
  } catch (error) {
    problem = (error as Error).message;
  }
  if (problem === null) return copy;
  throw new DataError("has a state that no checkpoint can hold", {
    code: "data/bad-sampler-state",
    subject: `${name}: save()`,
    expected: "plain JSON: objects, lists, texts, finite numbers, true, false, null",
    received: problem,
  });
}

function describeKind(value: unknown): string {
  if (typeof value !== "object") return typeof value === "number" ? String(value) : typeof value;
  return (value as object).constructor.name;
}
