import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { ConfigError } from "./errors/config-error.js";
import { DataError } from "./errors/data-error.js";
import { readOrThrow } from "./read-or-throw.js";

const details = { subject: "my.yaml", expected: "a readable YAML file" };

describe("readOrThrow", () => {
  it("returns the value, at once or later", async () => {
    expect(readOrThrow(() => 3, ConfigError, details)).toBe(3);
    expect(await readOrThrow(async () => 4, DataError, details)).toBe(4);
  });

  it("names the subject and the reason", async () => {
    const remedy = () => "look elsewhere";
    const fields = { ...details, received: expect.stringContaining("ENOENT"), remedy: "look elsewhere" };
    const read = () => readOrThrow(() => readFileSync("/none/such", "utf8"), ConfigError, { ...details, remedy });
    expect(read).toThrow(expect.objectContaining({ code: "config/unreadable", cause: expect.any(Error), ...fields }));
    const later = readOrThrow(() => readFile("/none/such", "utf8"), DataError, { ...details, remedy });
    await expect(later).rejects.toMatchObject({ code: "data/unreadable", name: "DataError", ...fields });
  });

  it("may take another name, and asks for no remedy if nothing failed", () => {
    const own = new DataError("is damaged", { code: "data/bad-row", subject: "row 3" });
    const read = () => {
      throw own;
    };
    expect(() => readOrThrow(read, ConfigError, { ...details, summary: "cannot be loaded" })).toThrow(
      expect.objectContaining({
        code: "config/unreadable",
        received: own.message,
        subject: "my.yaml",
        summary: "cannot be loaded",
      }),
    );
    const remedy = () => {
      throw new Error("asked");
    };
    expect(readOrThrow(() => 1, ConfigError, { ...details, remedy })).toBe(1);
  });
});
