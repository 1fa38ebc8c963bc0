import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { amount } from "@cria/core/testing";
import type { GroupSort } from "@cria/viewer/api";
import { afterAll, describe, expect, it } from "vitest";
import { makeDumpLine } from "../testing/make-dump-line.js";
import { DumpIndex } from "./dump-index.js";
import { IndexStore } from "./index-store.js";
import { listGroups, type PageOptions } from "./list-groups.js";

/** Conversations of a large dump. */
const many = amount(30_000, 100_000);

const root = mkdtempSync(join(tmpdir(), "cria-index-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function open(name: string, text?: string): Promise<DumpIndex> {
  if (text !== undefined) writeFileSync(join(root, name), text);
  const index = new DumpIndex(join(root, name));
  await index.update();
  return index;
}

const page = (index: DumpIndex, more: Partial<PageOptions> = {}) =>
  listGroups(index, { filter: "", search: "", sort: "order", down: false, offset: 0, limit: 50, ...more });

/** Two prompts with two conversations each. */
const lines = [
  {
    uid: "a/0",
    sample: 0,
    reward: 1,
    advantage: -1,
    question: "What is  1 + 1?",
    metrics: { tool_calls: 2, tool_errors: 1 },
  },
  { uid: "a/0", sample: 1, reward: 0, advantage: 1, success: false, answer: "Eleven, I SAY" },
  { uid: "b/1", sample: 0, reward: 0.25, advantage: 0, finish_reason: "length", extra: { depth: 3 } },
  { uid: "b/1", sample: 1, reward: null, error: "the tool broke", finish_reason: "aborted", advantage: null },
];
const dump = lines.map((line) => makeDumpLine(line)).join("");

describe("the index of a dump", () => {
  it("has the values of each line that lists show", async () => {
    const index = await open("rows.jsonl", dump);
    expect(await page(index)).toEqual({
      groups: [
        {
          uid: "a/0",
          prompt: expect.stringMatching(/^[0-9a-f]{16}$/),
          place: "train.jsonl, line 1",
          dataSource: "sums",
          title: "What is 1 + 1?",
          reward: 0.5,
          spread: 0.5,
          conversations: [
            {
              line: 0,
              uid: "a/0",
              sample: 0,
              reward: 1,
              success: true,
              advantage: -1,
              finish: "stop",
              sampled: 2,
              tokens: 4,
              turns: 2,
              toolCalls: 2,
              toolErrors: 1,
              mismatch: null,
              failed: false,
              place: "train.jsonl, line 1",
              dataSource: "sums",
            },
            expect.objectContaining({ line: 1, reward: 0, success: false }),
          ],
        },
        expect.objectContaining({ uid: "b/1", reward: 0.25, spread: 0 }),
      ],
      selected: null,
      matchedGroups: 2,
      matched: 4,
      total: 4,
      indexed: dump.length,
      size: dump.length,
    });
    expect((await index.read([index.find(2)!]))[0]).toMatchObject({ uid: "b/1", finish_reason: "length" });
    expect(index.find(4)).toBeUndefined();
    expect(index.neighbours(0)).toEqual({ previous: null, next: 1 });
  });

  it("measures the difference of sampler and trainer, if the dump has it", async () => {
    const text = makeDumpLine({
      rollout_logprobs: [0, 0, Math.log(0.5), Math.log(0.2)],
      old_logprobs: [0, 0, Math.log(0.5), Math.log(0.3)],
    });
    expect((await open("mismatch.jsonl", text)).rows[0]!.mismatch).toBeCloseTo(0.1, 5);
  });

  it("lies beside the dump, and is read again while the dump is the same", async () => {
    const file = join(root, "kept.jsonl");
    await open("kept.jsonl", dump);
    const before = readFileSync(`${file}.index`, "utf8");
    // The index's own data is used: here another reward.
    writeFileSync(`${file}.index`, before.replace('"a/0",0,1,true', '"a/0",0,7,true'));
    expect((await open("kept.jsonl")).rows[0]!.reward).toBe(7);
    // Another time: it may be another file of the same size.
    utimesSync(file, new Date(1e12), new Date(1e12));
    expect((await open("kept.jsonl")).rows[0]!.reward).toBe(1);
    // Damaged, of another version, or of another dump.
    const whole = readFileSync(`${file}.index`, "utf8");
    for (const text of [
      "",
      "{}",
      whole.slice(0, -20),
      whole.replace('"version":1', '"version":0'),
      whole.replace('"hash":"', '"hash":"0'),
    ]) {
      writeFileSync(`${file}.index`, text);
      expect((await open("kept.jsonl")).rows.map(({ reward }) => reward)).toEqual([1, 0, 0.25, null]);
    }
  });

  it("follows a dump that grows: a half-written line counts once it is whole", async () => {
    const more = makeDumpLine({ uid: "c/2" });
    const index = await open("grows.jsonl", dump + more.slice(0, 40));
    expect(index.rows).toHaveLength(4);
    appendFileSync(index.file, more.slice(40));
    await index.update();
    expect(index.rows.map(({ line, uid }) => [line, uid]).at(-1)).toEqual([4, "c/2"]);
    expect((await index.read([index.find(4)!]))[0]!.uid).toBe("c/2");
    // A new process continues from the first one's index.
    appendFileSync(index.file, makeDumpLine({ uid: "d/3" }));
    expect((await open("grows.jsonl")).rows).toHaveLength(6);
    // A shorter file is another one.
    truncateSync(index.file, dump.length);
    await index.update();
    expect(index.rows).toHaveLength(4);
  });

  it("takes a last line without its line feed, and numbers lines right when the file goes on", async () => {
    const index = await open("open-end.jsonl", dump.trimEnd());
    expect(index.rows).toHaveLength(4);
    appendFileSync(index.file, `\n${makeDumpLine({ uid: "c/2" })}`);
    await index.update();
    expect(index.rows.map(({ line }) => line)).toEqual([0, 1, 2, 3, 4]);
  });

  it("skips lines that are not conversations", async () => {
    const hostile = [
      "no JSON",
      "",
      "[]",
      '{"messages":[{"role":"user"}],"token_ids":[],"response_mask":[]}',
      '{"format_version":99,"messages":[],"token_ids":[],"response_mask":[]}',
      "\0".repeat(100),
    ].join("\n");
    const odd = {
      reward: "1",
      success: 1,
      num_turns: {},
      metrics: null,
      prompt_messages: -4,
      parts: 5,
      uid: 7,
      place: 3,
      old_logprobs: [null],
      error: { a: 1 },
    };
    const index = await open(
      "hostile.jsonl",
      `${hostile}\n${makeDumpLine(odd)}${makeDumpLine({ uid: "\u001b[31m<script>" })}`,
    );
    expect(index.rows.map(({ line, uid }) => [line, uid])).toEqual([
      [6, "7"],
      [7, "\u001b[31m<script>"],
    ]);
    expect((await page(index, { filter: "parts.x == null", search: "1" })).total).toBe(2);
    expect((await open("empty.jsonl", "")).rows).toEqual([]);
  });

  it("stays in memory if its file cannot be written", async () => {
    const folder = join(root, "read-only");
    mkdirSync(folder);
    writeFileSync(join(folder, "1.jsonl"), dump);
    // Root may write everywhere, but nobody may write over a folder.
    mkdirSync(join(folder, "1.jsonl.index"));
    chmodSync(folder, 0o555);
    const index = new DumpIndex(join(folder, "1.jsonl"));
    await index.update();
    expect(index.rows).toHaveLength(4);
    chmodSync(folder, 0o755);
  });

  it("of a removed dump is an error; a dump in its place is indexed anew", async () => {
    const index = await open("removed.jsonl", dump);
    rmSync(index.file);
    await expect(index.update()).rejects.toThrow(/ENOENT/);
    writeFileSync(index.file, makeDumpLine({ uid: "z/0" }));
    await index.update();
    expect(index.rows.map(({ uid }) => uid)).toEqual(["z/0"]);
  });
});

describe("lists", () => {
  it("are sorted, down or up, with missing values last", async () => {
    const index = await open(
      "sorted.jsonl",
      dump + makeDumpLine({ uid: "f", reward: null, error: "x", advantage: null }),
    );
    const order = async (sort: GroupSort, down = false) =>
      (await page(index, { sort, down })).groups.map(({ uid }) => uid);
    expect(await order("order")).toEqual(["a/0", "b/1", "f"]);
    expect(await order("order", true)).toEqual(["f", "b/1", "a/0"]);
    expect(await order("reward")).toEqual(["b/1", "a/0", "f"]);
    expect(await order("reward", true)).toEqual(["a/0", "b/1", "f"]);
    expect(await order("spread", true)).toEqual(["a/0", "b/1", "f"]);
    expect(await order("advantage")).toEqual(["b/1", "a/0", "f"]);
    expect(await order("errors", true)).toEqual(["a/0", "b/1", "f"]);
  });

  it("are filtered by the index, else by the lines; searched in the text of messages", async () => {
    const index = await open("filtered.jsonl", dump);
    const select = async (filter: string, search = "") => (await page(index, { filter, search })).selected;
    expect(await select("reward<1")).toEqual([1, 2]);
    expect(await select("failed || tool_errors > 0")).toEqual([0, 3]);
    expect(await select("extra.depth == 3")).toEqual([2]);
    expect(await select('answer ~ "eleven" && reward == 0')).toEqual([1]);
    expect(await select("", "eleven, i say")).toEqual([1]);
    expect(await select("reward==1", "eleven")).toEqual([]);
    expect(await select("", "format_version")).toEqual([]);
    expect(await page(index, { filter: "truncated" })).toMatchObject({
      matched: 1,
      matchedGroups: 1,
      total: 4,
      groups: [{ uid: "b/1" }],
    });
    await expect(select("rewrd<1")).rejects.toMatchObject({ code: "config/bad-filter", subject: "filter" });
  });

  it("filtered by the index alone are those filtered by the lines", async () => {
    const index = await open("same.jsonl", dump);
    for (const filter of [
      "score>0",
      "success",
      "advantage != null",
      "length==2",
      "sampled>1",
      "prompt_length==2",
      "turns>1",
      'finish_reason ~ "o"',
      'uid == "a/0"',
      "sample==1",
      "row==0",
      'source=="sums"',
      "step==1",
      "tool_calls>0",
      "unknown_tools==0",
      "reward==null",
      "score_before==null",
      "invalid_calls==0 && invalid_arguments==0",
    ]) {
      const [known, read] = await Promise.all([
        page(index, { filter }),
        page(index, { filter: `(${filter}) && extra.none == null` }),
      ]);
      expect(known.selected, filter).toEqual(read.selected);
    }
  });

  it("end when their request is aborted", async () => {
    const index = await open("ended.jsonl", dump);
    await expect(page(index, { search: "x", signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
  });

  it(`of ${many} conversations come at once, and the event loop goes on while they are indexed`, async () => {
    const file = join(root, "large.jsonl");
    const handle = openSync(file, "w");
    for (let start = 0; start < many; start += 5000) {
      const some = Array.from({ length: 5000 }, (_, k) => {
        const i = start + k;
        return makeDumpLine({
          uid: `sums/${i >> 3}`,
          sample: i & 7,
          reward: (i * 7919) % 11,
          question: `What is ${i}?`,
        });
      });
      writeSync(handle, some.join(""));
    }
    closeSync(handle);
    const index = new DumpIndex(file);
    let longest = 0;
    let isDone = false;
    const started = performance.now();
    const work = index.update().finally(() => {
      isDone = true;
    });
    const partial: number[] = [];
    while (!isDone) {
      const turn = performance.now();
      await setImmediate();
      longest = Math.max(longest, performance.now() - turn);
      if (partial.length < 3 && index.rows.length > 0) partial.push((await page(index)).indexed);
    }
    await work;
    const built = performance.now() - started;
    expect(index.rows).toHaveLength(many);
    expect(partial[0]).toBeLessThan(statSync(file).size);
    const times: Record<string, number> = { built, longest };
    const time = async (name: string, work: () => Promise<unknown>) => {
      const from = performance.now();
      await work();
      times[name] = performance.now() - from;
    };
    await time("first", () => page(index));
    await time("sorted", () => page(index, { sort: "spread", down: true, limit: 200 }));
    await time("filtered", () => page(index, { filter: "reward<3 && sampled>1", sort: "reward" }));
    await time("searched", () => page(index, { search: "is 99999?" }));
    const again = new DumpIndex(file);
    await time("opened", () => again.update());
    expect(again.rows).toHaveLength(many);
    if (process.env.CRIA_SHOW_TIMES) console.log(times, existsSync(`${file}.index`) && statSync(`${file}.index`).size);
    // On an idle machine a tenth of this.
    for (const name of ["first", "sorted", "filtered"]) expect(times[name], name).toBeLessThan(2000);
    expect(longest).toBeLessThan(2000);
  });
});

describe("the indexes that are kept", () => {
  it("are as many as have room, the last ones", async () => {
    const store = new IndexStore(5);
    const files = ["s1", "s2", "s3"].map((name) => {
      writeFileSync(join(root, `${name}.jsonl`), dump);
      return join(root, `${name}.jsonl`);
    });
    const [a, b] = files.map((file) => store.get(file));
    await Promise.all([a!.update(), b!.update()]);
    store.get(files[2]!);
    expect(store.get(files[1]!)).toBe(b);
    expect(store.get(files[0]!)).not.toBe(a);
  });
});
