import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  Batch,
  DataError,
  DenseColumn,
  deserializeBatch,
  RaggedColumn,
  serializeBatch,
  ValueColumn,
} from "../index.js";
import { dtypes } from "./typed-array.js";

const anyNumber = fc.oneof(fc.integer({ min: -99, max: 99 }), fc.double(), fc.constantFrom(Number.NaN, -0, Infinity));
const anyValue = fc.oneof(
  fc.jsonValue(),
  fc.anything({ withBigInt: true, withDate: true, withTypedArray: false, withNullPrototype: false }),
  fc.record({ $: fc.string(), v: fc.anything() }, { noNullPrototype: true }),
  fc.uint8Array(),
);

/** Batches of 0 to 8 samples with a dense, a matrix, a ragged and a value column. */
const anyBatch = fc.nat(8).chain((size) => {
  const rows = <T>(entry: fc.Arbitrary<T>) => fc.array(entry, { minLength: size, maxLength: size });
  return fc
    .record({
      scores: rows(anyNumber),
      matrix: rows(fc.tuple(anyNumber, anyNumber, anyNumber)),
      tokens: rows(fc.array(fc.integer({ min: 0, max: 1e6 }), { maxLength: 5 })),
      values: rows(anyValue),
      dtype: fc.constantFrom(...(Object.keys(dtypes) as (keyof typeof dtypes)[])),
      meta: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3, noNullPrototype: true }),
    })
    .map(
      (given) =>
        new Batch(
          {
            scores: new DenseColumn(dtypes[given.dtype].from(given.scores)),
            matrix: new DenseColumn(Float64Array.from(given.matrix.flat()), [3]),
            tokens: RaggedColumn.fromRows(
              given.tokens.map((row) => Int32Array.from(row)),
              "int32",
            ),
            values: new ValueColumn(given.values),
          },
          given.meta,
        ),
    );
});

/** A batch as plain rows: what every operation is compared with. */
function toRows(batch: Batch): unknown[] {
  return Array.from({ length: batch.size }, (_, i) =>
    batch.names.map((name) => {
      const column = batch.column(name) as DenseColumn | RaggedColumn | ValueColumn;
      const row = column.row(i);
      return column instanceof ValueColumn ? row : [...(row as Int32Array)];
    }),
  );
}

const small = new Batch(
  {
    tokenIds: RaggedColumn.fromRows([Int32Array.of(1, 2, 3), Int32Array.of(), Int32Array.of(4)]),
    reward: new DenseColumn(Float32Array.of(1, 0.5, 0)),
    uid: new ValueColumn(["a", "b", "c"]),
  },
  { step: 3 },
);

describe("operations on batches, as on plain rows", () => {
  it("repeat, interleaved and not", () => {
    fc.assert(
      fc.property(anyBatch, fc.integer({ min: 1, max: 4 }), (batch, n) => {
        const rows = toRows(batch);
        expect(toRows(batch.repeat(n, true))).toEqual(rows.flatMap((row) => Array(n).fill(row)));
        expect(toRows(batch.repeat(n, false))).toEqual(Array(n).fill(rows).flat());
        expect(batch.repeat(n).meta).toBe(batch.meta);
      }),
    );
    expect(small.repeat(2, true).values("uid")).toEqual(["a", "a", "b", "b", "c", "c"]);
    expect(small.repeat(2, false).values("uid")).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  it("split and chunk cut into parts that concat puts together again", () => {
    fc.assert(
      fc.property(anyBatch, fc.integer({ min: 1, max: 9 }), (batch, n) => {
        const parts = batch.split(n);
        expect(parts.flatMap(toRows)).toEqual(toRows(batch));
        for (const part of parts.slice(0, -1)) expect(part.size).toBe(n);
        if (parts.length > 0) expect(Batch.concat(parts).equals(batch)).toBe(true);
        if (batch.size % n !== 0) expect(() => batch.chunk(n)).toThrow(/padToDivisor/);
        else {
          const chunks = batch.chunk(n);
          expect(chunks.map((chunk) => chunk.size)).toEqual(Array(n).fill(batch.size / n));
          expect(Batch.concat(chunks).equals(batch)).toBe(true);
        }
      }),
    );
  });

  it("padToDivisor repeats samples from the start, unpad takes them off", () => {
    fc.assert(
      fc.property(anyBatch, fc.integer({ min: 1, max: 20 }), (batch, divisor) => {
        const { batch: padded, padSize } = batch.padToDivisor(divisor);
        expect(padded.size % divisor).toBe(0);
        expect(padSize).toBeLessThan(divisor);
        const rows = toRows(batch);
        expect(toRows(padded)).toEqual(Array.from({ length: padded.size }, (_, i) => rows[i % rows.length]));
        expect(padded.unpad(padSize).equals(batch)).toBe(true);
      }),
    );
  });

  it("reorder by a permutation, and back by its inverse", () => {
    fc.assert(
      fc.property(anyBatch, fc.infiniteStream(fc.nat()), (batch, keys) => {
        const order = Array.from({ length: batch.size }, (_, i) => ({ i, key: keys.next().value as number }))
          .sort((a, b) => a.key - b.key)
          .map(({ i }) => i);
        const inverse = order.map((_, i) => order.indexOf(i));
        const shuffled = batch.reorder(order);
        expect(toRows(shuffled)).toEqual(order.map((i) => toRows(batch)[i]));
        expect(shuffled.reorder(inverse).equals(batch)).toBe(true);
      }),
    );
  });

  it("pop and union undo each other", () => {
    fc.assert(
      fc.property(anyBatch, fc.subarray(["scores", "matrix", "tokens", "values"]), (batch, names) => {
        const { popped, rest } = batch.pop(names);
        expect(popped.names).toEqual(names);
        expect(rest.names.some((name) => names.includes(name))).toBe(false);
        expect(popped.union(rest).equals(batch)).toBe(true);
        expect(batch.union(batch).equals(batch)).toBe(true);
      }),
    );
  });

  it("never change the batch that they start from", () => {
    fc.assert(
      fc.property(anyBatch, (batch) => {
        const before = serializeBatch(batch);
        batch.repeat(3).padToDivisor(7).batch.split(2);
        batch.with({ extra: new ValueColumn(Array(batch.size).fill(1)) }, { more: true }).pop(["extra"]);
        expect(serializeBatch(batch)).toEqual(before);
      }),
    );
  });
});

describe("errors of batches", () => {
  const other = (column: DenseColumn, meta = {}) => new Batch({ reward: column }, meta);

  it("union of unequal values or meta is a conflict that names them", () => {
    expect(() => small.union(other(new DenseColumn(Float32Array.of(1, 0.5, 9))))).toThrow(/column "reward": differs/);
    expect(() => small.union(other(new DenseColumn(Float64Array.of(1, 0.5, 0))))).toThrow(/"reward"/);
    expect(() => small.union(other(new DenseColumn(Float32Array.of(1, 0.5, 0)), { step: 4 }))).toThrow(/meta "step"/);
    expect(small.union(other(new DenseColumn(Float32Array.of(1, 0.5, 0)), { epoch: 0 })).meta).toEqual({
      step: 3,
      epoch: 0,
    });
    expect(() => small.union(new Batch({ x: new ValueColumn([1]) }))).toThrow(/number of samples/);
  });

  it("wrong sizes, names, indices and counts say what was expected", () => {
    const cases: [() => unknown, RegExp][] = [
      [() => new Batch({ a: new ValueColumn([1]), b: new ValueColumn([]) }), /"b"[\s\S]*expected: 1[\s\S]*received: 0/],
      [() => small.select(["reward", "rewards"]), /"rewards": does not exist[\s\S]*tokenIds, reward, uid/],
      [() => small.ragged("reward"), /another kind[\s\S]*ragged[\s\S]*dense float32/],
      [() => small.take([0, 3]), /0 to 2[\s\S]*received: 3/],
      [() => small.reorder([0, 0, 1]), /permutation/],
      [() => small.repeat(0), /repeat/],
      [() => small.unpad(4), /unpad/],
      [() => Batch.concat([]), /at least one/],
      [() => Batch.concat([small, small.select(["uid"])]), /batch 1: has other columns/],
      [() => new DenseColumn(new Float32Array(5), [2]), /5 of float32/],
      [() => new RaggedColumn(new Int32Array(3), Int32Array.of(0, 2, 1, 3)), /offset 2 falling from 2 to 1/],
      [() => new RaggedColumn(new Int32Array(3), Int32Array.of(0, 2)), /last offset of 2/],
      [() => RaggedColumn.fromRows([Int32Array.of(1), Float32Array.of(1)]), /sample 1[\s\S]*float32/],
    ];
    for (const [make, message] of cases) {
      expect(make).toThrow(message);
      expect(make).toThrow(DataError);
    }
  });

  it("checkAligned finds the sample whose columns have different lengths", () => {
    const mask = (second: Uint8Array) =>
      small.with({ mask: RaggedColumn.fromRows([new Uint8Array(3), second, new Uint8Array(1)]) });
    expect(() => mask(new Uint8Array(0)).checkAligned(["tokenIds", "mask"])).not.toThrow();
    expect(() => mask(new Uint8Array(2)).checkAligned(["tokenIds", "mask"])).toThrow(/"mask", sample 1/);
  });
});

describe("a batch as bytes", () => {
  it("comes back as it was", () => {
    fc.assert(
      fc.property(anyBatch, fc.nat(7), (batch, shift) => {
        const bytes = serializeBatch(batch);
        // At any address, as inside of a larger buffer.
        const moved = new Uint8Array(bytes.length + shift);
        moved.set(bytes, shift);
        const back = deserializeBatch(moved.subarray(shift));
        expect(back.names).toEqual(batch.names);
        // Node 20 calls two dates that are none different; the bytes below tell.
        if (!inspect(batch, { depth: null }).includes("Invalid Date")) expect(back.equals(batch)).toBe(true);
        expect(serializeBatch(back)).toEqual(bytes);
      }),
    );
  });

  it("keeps a date that is none", () => {
    const batch = new Batch({ values: new ValueColumn([new Date(Number.NaN), { "": new Date(Number.NaN), $: 1 }]) });
    const back = deserializeBatch(serializeBatch(batch));
    expect(serializeBatch(back)).toEqual(serializeBatch(batch));
  });

  it("views of larger arrays are written without what lies around them", () => {
    const part = small.slice(2, 3);
    expect(deserializeBatch(serializeBatch(part)).equals(part)).toBe(true);
    expect(serializeBatch(part).length).toBeLessThan(serializeBatch(small).length);
  });

  it("damaged anywhere, cut off or of another kind is an error, never a wrong batch", () => {
    const bytes = serializeBatch(small);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const damaged = Uint8Array.from(bytes);
        damaged[at]! ^= flip;
        expect(() => deserializeBatch(damaged, "cache.bin")).toThrow(
          /cache\.bin: (is damaged|is not a batch|has an unknown version)/,
        );
      }),
    );
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), (length) => {
        expect(() => deserializeBatch(bytes.subarray(0, length))).toThrow(DataError);
      }),
    );
    expect(() => deserializeBatch(Uint8Array.from([...bytes, 0]))).toThrow(/is damaged/);
  });

  it("refuses what has no written form, and says where it is", () => {
    const batch = new Batch({ tools: new ValueColumn([{ a: 1 }, { run: [() => 1] }]) });
    expect(() => serializeBatch(batch)).toThrow(/column "tools"\[1\]\.run\[0\][\s\S]*function/);
    expect(() => serializeBatch(new Batch({}, { m: new Map() }))).toThrow(/meta\.m[\s\S]*instance of Map/);
  });
});

it("holds a training step's tokens: 64 trajectories of 4096 in a few milliseconds", () => {
  const tokens = Array.from({ length: 64 }, (_, i) => new Int32Array(4096).fill(i));
  const logprobs = tokens.map((row) => new Float32Array(row.length));
  const started = performance.now();
  const batch = new Batch({ tokenIds: RaggedColumn.fromRows(tokens), logprobs: RaggedColumn.fromRows(logprobs) });
  const parts = batch.reorder(Array.from(tokens, (_, i) => 63 - i)).chunk(8);
  const back = deserializeBatch(serializeBatch(Batch.concat(parts)));
  // 2 MB; generous, for slow machines.
  expect(performance.now() - started).toBeLessThan(500);
  expect(back.ragged("tokenIds").row(0)[0]).toBe(63);
});
