import { Registry } from "@cria/core";
import { formatValue, shuffleIndices } from "@cria/core/internal";
import type {
  BufferedGroup,
  GroupPicker,
  GroupRequest,
  GroupSampler,
  GroupSamplerClass,
  GroupSamplerOptions,
} from "./group-sampler.js";
import { askSampler, checkPositions, makeSampler, refusePick } from "./make-sampler.js";

/** Draws each group with the same probability. */
const pickUniformly: GroupPicker = ({ groups, count, seed }) =>
  [...shuffleIndices(groups.length, seed)].slice(0, count);

const pickNewest: GroupPicker = ({ groups, count }) => listNewest(groups).slice(0, count);

/** Takes the groups whose rewards vary most; of equal ones the newest. */
const pickByVariance: GroupPicker = ({ groups, count }) => {
  const variances = groups.map(({ rewards }) => computeVariance(rewards));
  return listNewest(groups)
    .sort((a, b) => variances[b]! - variances[a]!)
    .slice(0, count);
};

const listNewest = (groups: readonly BufferedGroup[]) => [...groups.keys()].reverse();

function computeVariance(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
}

/** Samplers by `algorithm.replay.sampling`. */
export const groupSamplers = new Registry<GroupSamplerClass | GroupPicker>(
  "sampler of groups",
  { uniform: pickUniformly, newest: pickNewest, by_variance: pickByVariance },
  {
    subject: "algorithm.replay.sampling",
    alternative: '"./module.ts#export"',
    remedy: "use one of these, or name your own",
  },
);

/**
 * @param subject name of `given` in errors. @throws ConfigError when `given` is neither a sampler class nor a
 * function; errors of the class.
 */
export function makeGroupSampler(given: unknown, options: GroupSamplerOptions, subject: string): GroupSampler {
  return makeSampler<GroupSampler, GroupSamplerClass, GroupPicker>(given, subject, {
    what: "groups",
    construct: (Sampler) => new Sampler(options),
    wrap: (pick) => ({ pick: (request) => pick({ ...request, kwargs: options.kwargs }) }),
  });
}

/**
 * Asks a sampler for the groups of a step.
 * @param name the sampler's name in errors. @throws DataError unless it meets the contract of `GroupSampler.pick`.
 */
export function pickGroups(sampler: GroupSampler, request: GroupRequest, name: string): readonly number[] {
  const { step, count, groups } = request;
  const subject = `${name}: step ${step}`;
  const refuse = (expected: string, received: string) => refusePick("groups", subject, { expected, received });
  // The sampler may change its copy.
  const picked = askSampler(sampler, { ...request, groups: [...groups] }, { what: "groups", subject });
  if (!Array.isArray(picked)) throw refuse("a list of positions", formatValue(picked));
  if (picked.length > count) throw refuse(`at most ${count} positions`, `${picked.length}`);
  checkPositions(picked, groups.length, "group", refuse);
  return picked;
}
