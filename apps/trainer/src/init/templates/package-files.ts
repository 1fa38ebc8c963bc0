export function makePackage(name: string): string {
  const scripts = {
    check: "cria check-env tools.yaml && cria check-env interaction.yaml",
    rollout: "cria rollout config.yaml --val",
    train: "cria train config.yaml",
    test: "node --test",
  };
  return `${JSON.stringify({ name, private: true, type: "module", scripts }, null, 2)}\n`;
}

export const gitignoreTemplate = "runs/\nnode_modules/\n";

export const testTemplate = `import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/** The cria to test with: CRIA may name another one, for example "node /path/to/cria.mjs". */
const [command, ...before] = (process.env.CRIA ?? "npx cria").split(" ");

function cria(...args) {
  const options = { cwd: import.meta.dirname, encoding: "utf8" };
  const { status, stdout, stderr } = spawnSync(command, [...before, ...args, "--json"], options);
  return { status, stderr, result: stdout ? JSON.parse(stdout) : undefined };
}

for (const file of ["tools.yaml", "interaction.yaml"]) {
  test(\`\${file}: a scripted model finds nothing wrong\`, () => {
    const { status, stderr, result } = cria("check-env", file);
    assert.equal(status, 0, stderr || JSON.stringify(result, null, 2));
    assert.equal(result.errors, 0);
  });
}

test("the policy has conversations that end, with the tool and with feedback", () => {
  const folder = mkdtempSync(join(tmpdir(), "environment-"));
  const out = join(folder, "trajectories.jsonl");
  const { status, stderr, result } = cria("rollout", "config.yaml", "--rows", "8", "--out", out, "trainer.threads=1");
  assert.equal(status, 0, stderr);
  assert.equal(result.failed, 0);
  assert.ok(result.metrics.tool_calls > 0);
  assert.ok(result.metrics.interaction_turns > 0);
  assert.equal(readFileSync(out, "utf8").trim().split("\\n").length, result.trajectories);
  rmSync(folder, { recursive: true });
});
`;
