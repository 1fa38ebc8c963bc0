import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { clients } from "./all-clients.js";
import { writeTable } from "./client.js";

it("the documentation's table is that of the tests", () => {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "clients.md"), "utf8");
  expect(text).toContain(writeTable(clients));
});
