import type { Trajectory } from "@cria/core";
import { describe, expect, it } from "vitest";
import { holdConversation } from "../loops/hold-conversation.js";
import type { ConversationWork } from "../loops/rollout-options.js";
import type { RewardRequest } from "../rewards/index.js";
import { makeFakeRollout, makeRow } from "../testing/fake-rollout.js";
import { type DatasetRow, parseRow } from "./dataset-row.js";
import { MOST_SAMPLES } from "./row-samples.js";

const base = { data_source: "test", prompt: [{ role: "user", content: "hi" }] };
const read = (given: unknown) => parseRow({ ...base, __rollout_n__: given }, 3, "rows.jsonl, line 4").samples;

describe("the conversations of a row", () => {
  it.each([1, 5, MOST_SAMPLES, 5n])("are %s by __rollout_n__", (given) => {
    expect(read(given)).toBe(Number(given));
  });

  it("are as many as the run's if the row has no number", () => {
    expect([read(null), read(undefined)]).toEqual([undefined, undefined]);
    expect("samples" in parseRow(base, 0, "here")).toBe(false);
  });

  it.each([0, -1, 2.5, MOST_SAMPLES + 1, "4", Number.NaN, true, [4]])("refuses %s, naming row and value", (given) => {
    expect(() => read(given)).toThrow(
      expect.objectContaining({
        code: "data/bad-row",
        subject: expect.stringMatching(/rows\.jsonl, line 4.*__rollout_n__/),
        expected: expect.stringContaining(`from 1 to ${MOST_SAMPLES}`),
        received: JSON.stringify(given),
      }),
    );
  });

  const rows = () => [2, null, 1, 5].map((n, i) => makeRow({ __rollout_n__: n }, i));
  const place = ({ rowIndex, sampleIndex }: Trajectory) => [rowIndex, sampleIndex];
  const drawn = ({ sampling }: Trajectory) => sampling?.seed;
  const reply = () => "hello";

  it("are a group of that size, in the order of rows and samples, drawn as in any other size", async () => {
    const ragged = await makeFakeRollout({ reply, n: 3 }).run(rows());
    expect(ragged.map(place)).toEqual(
      [2, 3, 1, 5].flatMap((n, row) => Array.from({ length: n }, (_, sample) => [row, sample])),
    );
    const even = await makeFakeRollout({ reply, n: 5 }).run(rows().map(({ samples: _, ...row }) => row));
    const seeds = new Map(even.map((trajectory) => [place(trajectory).join(), drawn(trajectory)]));
    for (const trajectory of ragged) expect(drawn(trajectory)).toBe(seeds.get(place(trajectory).join()));
    expect(new Set(ragged.map(drawn)).size).toBe(11);
  });

  it("reach a judge of a whole batch at once, numbered in their order", async () => {
    const batches: (readonly RewardRequest[])[] = [];
    const reward = {
      granularity: "batch" as const,
      judge: async (requests: readonly RewardRequest[]) => {
        batches.push(requests);
        return requests.map(({ order }) => ({ score: order, extra: {} }));
      },
    };
    const judged = await makeFakeRollout({ reply, n: 3, reward }).run(rows());
    expect(batches).toHaveLength(1);
    expect(judged.map(({ reward }) => reward)).toEqual([...judged.keys()]);
  });

  it("are held one by one elsewhere", async () => {
    const given: ConversationWork[] = [];
    const { engine, options, run } = makeFakeRollout({
      reply,
      n: 3,
      converse: (work) => {
        given.push(work);
        const { n: _, converse: __, ...environment } = options;
        return holdConversation(engine, work, environment);
      },
    });
    const judged = await run(rows());
    expect(judged.map(place)).toEqual(given.map(({ row, sample }) => [row.index, sample]));
    expect(judged.map(drawn)).toEqual((await makeFakeRollout({ reply, n: 3 }).run(rows())).map(drawn));
  });

  it("of rows made by programs are checked before anything is sampled", async () => {
    const rollout = makeFakeRollout({ reply });
    for (const samples of [0, 1.5, MOST_SAMPLES + 1]) {
      const row: DatasetRow = { ...makeRow(), samples };
      await expect(rollout.run([row])).rejects.toMatchObject({ code: "data/bad-row", received: String(samples) });
    }
  });
});
