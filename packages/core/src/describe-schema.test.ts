import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeIssue, describeSchema, withoutLibraryTexts } from "./describe-schema.js";

describe("describeSchema", () => {
  it.each([
    [z.number(), "a number"],
    [z.number().min(0).lt(1), "a number, at least 0 and below 1"],
    [z.int().positive().nullable().default(3), "a whole number, above 0, or null"],
    [z.bigint(), "a whole number"],
    [z.boolean().optional(), "true or false"],
    [z.enum(["a", "b"]), "one of a, b"],
    [z.literal("x"), '"x"'],
    [z.union([z.string(), z.array(z.int())]), "a text; or a list; each entry a whole number"],
    [z.tuple([z.string(), z.string()]), "a list of 2 values"],
    [z.strictObject({}).prefault({}), "a mapping of keys and values"],
    [z.record(z.string(), z.unknown()), "a mapping of keys and values"],
    [z.url(), "an address that begins with http:// or https://"],
    [z.string().transform(Number), "a text"],
    [z.preprocess((value) => [value].flat(), z.array(z.string())), "a list; each entry a text"],
  ])("%#: %s", (schema, text) => {
    expect(describeSchema(schema)).toBe(text);
  });
});

describe("describeIssue", () => {
  const schema = z.strictObject({
    list: z.array(z.string()).min(1),
    table: z.record(z.string(), z.number()),
    name: z.string().regex(/^x/, "a name that begins with x"),
    either: z.union([z.number(), z.string().regex(/^y/, "a text that begins with y")]),
  });
  const right = { list: ["a"], table: {}, name: "x", either: 1 };

  it.each([
    [{ list: [] }, "a list; each entry a text; at least 1 of them"],
    [{ list: [3] }, "a text"],
    [{ table: { a: "b" } }, "a number"],
    [{ name: "a" }, "a name that begins with x"],
    [{ either: "a" }, "a text that begins with y"],
    [{ either: true }, "a number; or a text"],
    [{ more: 1 }, 'no key "more"'],
  ])("%j", (wrong, text) => {
    const { error } = schema.safeParse({ ...right, ...wrong }, withoutLibraryTexts);
    expect(error!.issues.map((issue) => describeIssue(schema, issue))).toEqual([text]);
  });
});
