import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(root, "docs", "cluster-security.md"), "utf8");

it("docs/cluster-security.md names each file here that people use, and only existing ones", () => {
  const made = ["nats.conf", "jwt.conf"];
  const named = [...page.matchAll(/[\w-]+\.(?:conf|mjs|sh|yaml)\b/g)].map(([name]) => name);
  const elsewhere = ["config.yaml", "compose.yaml"];
  for (const name of named)
    if (![...made, ...elsewhere].includes(name)) expect(existsSync(join(import.meta.dirname, name)), name).toBe(true);
  const here = readdirSync(import.meta.dirname).filter((name) => !name.endsWith(".ts"));
  for (const name of here) expect(named, name).toContain(name);
});
