import { expect, it } from "vitest";
import { Registry } from "./registry.js";

it("a registry takes entries of users, and names what there is", () => {
  const registry = new Registry<number>("size", { small: 1 });
  registry.register("large", 9);
  expect(registry.get("large")).toBe(9);
  expect(() => registry.get("huge")).toThrow(/large, small/);
});
