import { ConfigError, DataError } from "@cria/core";
import { formatValue } from "@cria/core/internal";

/** The methods of samplers of every kind. */
interface Sampler<Request> {
  pick(request: Request): unknown;
  update?: unknown;
  save?: unknown;
  restore?: unknown;
}

/** A kind of samplers: how a user's class of them, or function, becomes one. */
interface SamplerKind<Made, Class, Picker> {
  /** The things that they pick: "rows". */
  what: string;
  construct(given: Class): Made;
  wrap(pick: Picker): Made;
}

/**
 * Makes a sampler of a user's class or function.
 * @param subject name of `given` in errors. @throws ConfigError when it is neither, or its state would be lost.
 */
export function makeSampler<Made extends Sampler<never>, Class, Picker>(
  given: unknown,
  subject: string,
  { what, construct, wrap }: SamplerKind<Made, Class, Picker>,
): Made {
  const refuse = (expected: string, received: string) =>
    new ConfigError(`does not sample ${what}`, { code: "config/bad-sampler", subject, expected, received });
  if (typeof given !== "function")
    throw refuse(`a function that picks ${what}, or a class with a method pick()`, formatValue(given));
  const isClass = /^class\b/.test(Function.prototype.toString.call(given)) || given.prototype?.pick !== undefined;
  if (!isClass) return wrap(given as Picker);
  const sampler = construct(given as Class);
  if (typeof sampler.pick !== "function")
    throw refuse("a class with a method pick()", `a class without it: ${given.name}`);
  const { update, save, restore } = sampler;
  if (update === undefined && save === undefined && restore === undefined) return sampler;
  for (const [name, method] of Object.entries({ save, restore }))
    if (typeof method !== "function")
      throw refuse(
        "save() and restore(), both of them, in a class with a state: a run that goes on must know what was before",
        `none named ${name}`,
      );
  return sampler;
}

/** Makes the error for what a sampler picked. @param what what it picks: "rows". */
export function refusePick(
  what: string,
  subject: string,
  { expected, received, cause }: { expected: string; received: string; cause?: unknown },
): DataError {
  return new DataError(`picked no ${what} of a step`, { code: "data/bad-pick", subject, expected, received, cause });
}

/**
 * Asks a sampler. @param subject name of the sampler and the step in errors. @throws DataError if the user's code
 * throws.
 */
export function askSampler<Request>(
  sampler: Sampler<Request>,
  request: Request,
  { what, subject }: { what: string; subject: string },
): unknown {
  try {
    return sampler.pick(request);
  } catch (cause) {
    const received = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
    throw refusePick(what, subject, { expected: "a list of positions", received, cause });
  }
}

/** @param length number of entries to pick from. @throws errors of `refuse` unless all positions exist and differ. */
export function checkPositions(
  positions: readonly number[],
  length: number,
  what: string,
  refuse: (expected: string, received: string) => Error,
): void {
  const wrong = positions.findIndex((position) => !Number.isInteger(position) || position < 0 || position >= length);
  if (wrong >= 0) throw refuse(`whole numbers from 0 to ${length - 1}`, formatValue(positions[wrong]));
  const seen = new Set<number>();
  const twice = positions.find((position) => seen.has(position) || !seen.add(position));
  if (twice !== undefined) throw refuse(`each ${what} once`, `${what} ${twice} twice`);
}
