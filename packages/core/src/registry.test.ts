import { describe, expect, it } from "vitest";
import { Registry } from "./registry.js";

describe("a registry", () => {
  it("takes entries of users, and lists its names", () => {
    const sizes = new Registry<number>("size", { small: 1, none: 0 });
    sizes.register("large", 9);
    expect(sizes.get("large")).toBe(9);
    expect(sizes.get("none")).toBe(0);
    expect(sizes.find("huge")).toBeUndefined();
    expect(sizes.resolve("small")).toBe(1);
    expect(sizes.resolve(7)).toBe(7);
    for (const name of ["huge", "toString", "__proto__"])
      expect(() => sizes.get(name)).toThrow(
        expect.objectContaining({
          code: "config/unknown-name",
          subject: "size",
          expected: "large, none, small",
          received: name,
          remedy: expect.stringContaining("register"),
        }),
      );
  });

  it("refuses an unknown name with its place, the known names and a remedy", () => {
    const errors = { subject: "box.size", alternative: "./mine.ts#size", remedy: "measure it" };
    const sizes = new Registry<number>("open size", { small: 1 }, errors);
    for (const registry of [sizes, sizes.extend()])
      expect(() => registry.get("huge")).toThrow(
        expect.objectContaining({
          code: "config/unknown-name",
          subject: "box.size",
          expected: "small, or ./mine.ts#size",
          received: "huge",
          remedy: "measure it",
        }),
      );
  });

  it("takes the details of a place, which override its own", () => {
    const sizes = new Registry<number>("size", { small: 1 }, { subject: "box.size", alternative: "./mine.ts#size" });
    for (const look of ["get", "resolve"] as const)
      expect(() => sizes[look]("huge", { subject: "lid.size", alternative: undefined })).toThrow(
        expect.objectContaining({ code: "config/unknown-name", subject: "lid.size", expected: "small" }),
      );
  });

  it("is extended by runs, which do not see each other's entries", () => {
    const sizes = new Registry<number>("size", { small: 1 });
    const [one, other] = [sizes.extend(), sizes.extend()];
    one.register("./mine.ts#size", 10);
    other.register("./mine.ts#size", 20);
    one.register("small", 2);
    sizes.register("late", 5);
    expect([one, other].map((run) => run.get("./mine.ts#size"))).toEqual([10, 20]);
    expect([one, other, sizes].map((run) => run.get("small"))).toEqual([2, 1, 1]);
    expect(other.get("late")).toBe(5);
    expect(one.names()).toEqual(["./mine.ts#size", "late", "small"]);
    expect(() => sizes.get("./mine.ts#size")).toThrow(
      expect.objectContaining({ code: "config/unknown-name", expected: "late, small" }),
    );
  });
});
