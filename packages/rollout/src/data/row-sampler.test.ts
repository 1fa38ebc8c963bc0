import { describe, expect, it } from "vitest";
import { DifficultySampler } from "./difficulty-sampler.js";
import { makeRowSampler, pickRows } from "./make-row-sampler.js";
import type { PickRequest, RowSampler } from "./row-sampler.js";

const options = { batchSize: 2, seed: 0, kwargs: {} };
const rows = [{ uid: "a" }, { uid: "b" }, { uid: "c" }];
const ask = (more: Partial<PickRequest> = {}): PickRequest => ({
  step: 1,
  count: 2,
  spare: 0,
  samples: 8,
  seed: 7,
  ...more,
});
const make = (given: unknown) => makeRowSampler(given, rows, options, "s");

describe("a sampler of rows", () => {
  it("is a function that sees the rows, or a class that is made with them", () => {
    const seen: unknown[] = [];
    const picker = make((request: object) => {
      seen.push(request);
      return [2, 0];
    });
    expect(picker.pick(ask())).toEqual([2, 0]);
    expect(seen).toEqual([{ ...ask(), rows }]);
    class Last implements RowSampler {
      constructor(
        readonly given: readonly object[],
        readonly how: object,
      ) {}
      pick({ count }: PickRequest) {
        return this.given.map((_, i) => i).slice(-count);
      }
    }
    const last = make(Last) as Last;
    class Field {
      pick = () => [1, 0];
    }
    expect(make(Field).pick(ask())).toEqual([1, 0]);
    expect([last.given, last.how, last.pick(ask())]).toEqual([rows, options, [1, 2]]);
  });

  it.each<[string, unknown]>([
    ["no function", { pick: () => [] }],
    ["a class without pick", class Nothing {}],
    [
      "a class that learns and is not saved",
      class Learns {
        pick() {
          return [0, 1];
        }
        update() {}
      },
    ],
    [
      "a class whose saved state is not restored",
      class Forgets {
        pick() {
          return [0, 1];
        }
        save() {}
      },
    ],
  ])("is not %s", (_, given) => {
    expect(() => make(given)).toThrow(expect.objectContaining({ code: "config/bad-sampler", subject: "s" }));
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["a promise", Promise.resolve([0, 1])],
    ["too few", [0]],
    ["too many", [0, 1, 2]],
    ["a row twice", [1, 1]],
    ["a position behind the end", [0, 3]],
    ["no whole number", [0, 0.5]],
    ["a row twice, once with samples", [1, { row: 1, samples: 2 }]],
    ["no conversation of a row", [0, { row: 1, samples: 0 }]],
    ["samples without a row", [0, { samples: 2 }]],
    ["a text", [0, "1"]],
    ["an empty place", [0, undefined]],
  ])("cannot pick %s", (_, picked) => {
    const pick = (given: unknown, request = ask()) =>
      pickRows(
        make(() => given),
        request,
        rows.length,
        "s",
      );
    expect(() => pick(picked)).toThrow(expect.objectContaining({ code: "data/bad-pick", subject: "s: step 1" }));
    const right = [0, { row: 1, samples: 3 }, 2];
    expect(pick(right, ask({ spare: 1 }))).toEqual(right);
  });

  it("that throws is named, with its error", () => {
    const cause = new Error("broken");
    const broken = make(() => {
      throw cause;
    });
    expect(() => pickRows(broken, ask(), rows.length, "s")).toThrow(
      expect.objectContaining({ code: "data/bad-pick", subject: "s: step 1", cause }),
    );
  });
});

describe("the sampler difficulty", () => {
  const many = Array.from({ length: 20 }, (_, i) => ({ uid: String(i) }));
  const shareOf = (sampler: DifficultySampler, row: number) => {
    const draws = 2000;
    const hits = Array.from({ length: draws }, (_, seed) => sampler.pick(ask({ count: 1, seed }))[0] === row);
    return hits.filter((hit) => hit).length / draws;
  };
  const tell = (sampler: DifficultySampler, success: number | null, times: number) => {
    for (let step = 1; step <= times; step++) sampler.update({ step, rows: [{ row: 4, rewards: [], success }] });
  };

  it("draws all rows alike at first, each once, by the seed alone", () => {
    const sampler = new DifficultySampler(many, { kwargs: {} });
    const all = sampler.pick(ask({ count: 20 }));
    expect([...(all as number[])].sort((a, b) => a - b)).toEqual(many.map((_, i) => i));
    expect(sampler.pick(ask({ count: 20 }))).toEqual(all);
    expect(sampler.pick(ask({ count: 20, seed: 8 }))).not.toEqual(all);
    expect(sampler.pick(ask({ count: 3, spare: 2 }))).toEqual(all.slice(0, 5));
    expect(shareOf(sampler, 4)).toBeCloseTo(1 / 20, 1);
  });

  it.each([0, 1])("asks less and less often for rows that always score %d, but goes on asking", (success) => {
    const sampler = new DifficultySampler(many, { kwargs: {} });
    tell(sampler, success, 1);
    // p is 1/4 or 3/4: its weight is 4 * 3/16.
    expect(shareOf(sampler, 4)).toBeGreaterThan(0.025);
    tell(sampler, success, 9);
    const share = shareOf(sampler, 4);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(0.015);
    // A row whose success drops is drawn more often again.
    tell(sampler, 0.5, 3);
    expect(shareOf(sampler, 4)).toBeGreaterThan(0.03);
  });

  it("learns nothing from rows without rewards, and goes on where it was saved", () => {
    const sampler = new DifficultySampler(many, { kwargs: { rate: 1, least: 0.01 } });
    tell(sampler, null, 3);
    expect(sampler.save()[4]).toBe(0.5);
    tell(sampler, 1, 1);
    expect(sampler.save()[4]).toBe(1);
    const again = new DifficultySampler(many, { kwargs: { rate: 1, least: 0.01 } });
    again.restore(sampler.save());
    for (let seed = 0; seed < 50; seed++)
      expect(again.pick(ask({ count: 5, seed }))).toEqual(sampler.pick(ask({ count: 5, seed })));
  });

  it("gives rows that seldom succeed more of the step's conversations, and each at least two", () => {
    const sampler = new DifficultySampler(many.slice(0, 4), { kwargs: { samples: "harder", rate: 1 } });
    const samplesOf = (request: Partial<PickRequest>) => {
      const picked = sampler.pick(ask({ count: 4, ...request })) as { row: number; samples: number }[];
      return [...picked].sort((a, b) => a.row - b.row).map(({ samples }) => samples);
    };
    expect(samplesOf({})).toEqual([8, 8, 8, 8]);
    sampler.update({
      step: 1,
      rows: [
        { row: 0, rewards: [], success: 0 },
        { row: 1, rewards: [], success: 1 },
      ],
    });
    // Weights 1, 0.1, 0.5 and 0.5 share the 24 conversations beyond two of each.
    expect(samplesOf({})).toEqual([13, 3, 8, 8]);
    expect(samplesOf({ samples: 1 })).toEqual([1, 1, 1, 1]);
    // A step's rows and those that may replace them have as many conversations each.
    const spare = sampler.pick(ask({ count: 2, spare: 2 })) as { samples: number }[];
    expect([spare[0]!.samples + spare[1]!.samples, spare[2]!.samples + spare[3]!.samples]).toEqual([16, 16]);
  });

  it.each([{ rate: 0 }, { samples: "more" }, { least: 2 }, { rate: "x" }, { speed: 1 }])("refuses %j", (kwargs) => {
    const [name] = Object.keys(kwargs);
    expect(() => new DifficultySampler(many, { kwargs })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: `data.sampler.sampler_kwargs.${name}` }),
    );
  });
});
