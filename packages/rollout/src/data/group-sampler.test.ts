import { describe, expect, it } from "vitest";
import type { BufferedGroup, GroupRequest, GroupSampler, GroupSamplerOptions } from "./group-sampler.js";
import { groupSamplers, makeGroupSampler, pickGroups } from "./make-group-sampler.js";

const options: GroupSamplerOptions = { seed: 3, kwargs: { keep: 2 } };
const make = (given: unknown) => makeGroupSampler(given, options, "s");

/** Groups of two conversations whose rewards differ by `spread`, the oldest first. */
const listGroups = (spreads: readonly number[]): BufferedGroup[] =>
  spreads.map((spread, i) => ({
    step: i + 1,
    age: spreads.length - i,
    uid: `row ${i}`,
    dataSource: "test",
    rewards: [0, spread],
    tokens: [4, 5],
    success: null,
  }));

const ask = (more: Partial<GroupRequest> = {}): GroupRequest => ({
  step: 4,
  count: 2,
  groups: listGroups([1, 3, 2]),
  seed: 7,
  ...more,
});

describe("a sampler of groups", () => {
  it("is a function that sees the options, or a class that is made with them", () => {
    const seen: unknown[] = [];
    const picker = make((request: object) => {
      seen.push(request);
      return [2, 0];
    });
    expect(pickGroups(picker, ask(), "s")).toEqual([2, 0]);
    expect(seen).toEqual([{ ...ask(), kwargs: options.kwargs }]);
    class First implements GroupSampler {
      constructor(readonly given: GroupSamplerOptions) {}
      pick({ count }: GroupRequest) {
        return [0, 1, 2].slice(0, count);
      }
    }
    const first = make(First) as First;
    expect([first.given, pickGroups(first, ask(), "s")]).toEqual([options, [0, 1]]);
  });

  it("may pick fewer, or none", () => {
    for (const picked of [[], [1]])
      expect(
        pickGroups(
          make(() => picked),
          ask(),
          "s",
        ),
      ).toEqual(picked);
  });

  it("cannot change what is in the buffer", () => {
    const request = ask();
    const greedy = make(({ groups }: { groups: unknown[] }) => {
      groups.length = 0;
      return [0];
    });
    expect(pickGroups(greedy, request, "s")).toEqual([0]);
    expect(request.groups).toHaveLength(3);
  });

  it.each<[string, unknown]>([
    ["no function", { pick: () => [] }],
    ["a class without pick", class Nothing {}],
    [
      "a class whose saved state is not restored",
      class Forgets {
        pick() {
          return [];
        }
        save() {}
      },
    ],
  ])("is not %s", (_, given) => {
    expect(() => make(given)).toThrow(expect.objectContaining({ code: "config/bad-sampler", subject: "s" }));
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["a promise", Promise.resolve([0])],
    ["more than there is room for", [0, 1, 2]],
    ["a group twice", [1, 1]],
    ["a position behind the end", [3]],
    ["a negative position", [-1]],
    ["no whole number", [0.5]],
    ["a group", [ask().groups[0]]],
    ["an empty place", [undefined]],
  ])("cannot pick %s", (_, picked) => {
    expect(() =>
      pickGroups(
        make(() => picked),
        ask(),
        "s",
      ),
    ).toThrow(expect.objectContaining({ code: "data/bad-pick", subject: "s: step 4" }));
  });

  it("that throws is named, with its error", () => {
    const cause = new TypeError("broken");
    const broken = make(() => {
      throw cause;
    });
    expect(() => pickGroups(broken, ask(), "s")).toThrow(
      expect.objectContaining({ code: "data/bad-pick", subject: "s: step 4", cause }),
    );
  });
});

describe("built-in samplers of groups", () => {
  const pick = (name: string, more: Partial<GroupRequest> = {}) => make(groupSamplers.get(name)).pick(ask(more));

  it("take the newest, or those whose rewards vary most, and of equal ones the newest", () => {
    expect(pick("newest")).toEqual([2, 1]);
    expect(pick("by_variance")).toEqual([1, 2]);
    expect(pick("by_variance", { groups: listGroups([1, 1, 1]) })).toEqual([2, 1]);
  });

  it("draw each group alike, by the seed alone", () => {
    expect(pick("uniform")).toEqual(pick("uniform"));
    const hits = [0, 0, 0];
    for (let seed = 0; seed < 3000; seed++) for (const group of pick("uniform", { seed })) hits[group]!++;
    // Two of three groups each time; the standard deviation of a count is 26.
    for (const count of hits) expect(Math.abs(count - 2000)).toBeLessThan(130);
  });
});
