import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

/** Which packages of ours each folder may import. */
const arrows: Record<string, string[]> = {
  "packages/core": [],
  "packages/tokenizer-delta": ["@cria/core"],
  "packages/engine": ["@cria/core", "@cria/native"],
  "packages/tools": ["@cria/core"],
  "packages/algorithms": ["@cria/core"],
  "packages/rollout": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools"],
  "apps/trainer": [
    "@cria/core",
    "@cria/tokenizer-delta",
    "@cria/engine",
    "@cria/tools",
    "@cria/algorithms",
    "@cria/rollout",
  ],
};

function listSources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe.each(Object.entries(arrows))("%s", (folder, allowed) => {
  it("imports only what its arrow allows", () => {
    const sources = listSources(join(import.meta.dirname, "..", folder, "src"));
    expect(sources.length).toBeGreaterThan(0);
    const wrong = sources.flatMap((file) => {
      const imports = [...readFileSync(file, "utf8").matchAll(/from "((?:@cria\/[a-z-]+|cria)(?:\/[a-z]+)?)"/g)].map(
        (m) => m[1]!.replace(/\/testing$/, ""),
      );
      return imports.filter((name) => !allowed.includes(name)).map((name) => `${file} imports ${name}`);
    });
    expect(wrong).toEqual([]);
  });
});
