/** Versions of the scaffold's dependencies; Cria's version is that of the running program. */
const TYPESCRIPT = "^5.9.3";
const NODE_TYPES = "^20.19.25";
const ZOD = "^4.6.7";

/** @param files of tools and interactions that `npm run check` checks. */
export function makePackage(name: string, files: readonly string[], version: string): string {
  const run = `runs/${name}/first`;
  const manifest = {
    name,
    private: true,
    type: "module",
    scripts: {
      check: files.map((file) => `cria check-env ${file}`).join(" && "),
      types: "tsc",
      rollout: "cria rollout config.yaml --val",
      train: "cria train config.yaml",
      eval: `cria eval config.yaml --checkpoint ${run}`,
      export: `cria export --run ${run} --adapter adapter.gguf`,
      test: "node --test",
    },
    dependencies: { cria: `^${version}`, zod: ZOD },
    devDependencies: { "@types/node": NODE_TYPES, typescript: TYPESCRIPT },
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Only for the editor and `tsc`: Cria runs TypeScript without a build. */
export const tsconfigTemplate = `${JSON.stringify(
  {
    compilerOptions: {
      target: "ES2023",
      module: "NodeNext",
      strict: true,
      verbatimModuleSyntax: true,
      skipLibCheck: true,
      noEmit: true,
      types: ["node"],
    },
    include: ["*.ts"],
  },
  null,
  2,
)}\n`;

export const gitignoreTemplate = "runs/\nnode_modules/\n";

/**
 * @param files of tools and interactions to check.
 * @param expectCalls true if the policy uses tools and feedback from the start.
 */
export function makeTest(files: readonly string[], expectCalls: boolean): string {
  const calls = expectCalls
    ? `  assert.ok(result.metrics.tool_calls > 0);
  assert.ok(result.metrics.interaction_turns > 0);
`
    : "";
  return `import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/** The cria to test with: CRIA may name another one, for example "node /path/to/cria.mjs". */
const [command, ...before] = (process.env.CRIA ?? "npx cria").split(" ");
/** Milliseconds for each command. */
const timeout = 600_000;

function cria(...args) {
  const options = { cwd: import.meta.dirname, encoding: "utf8", timeout };
  const { status, stdout, stderr, error } = spawnSync(command, [...before, ...args, "--json"], options);
  if (error) throw error;
  return { status, stderr, result: stdout ? JSON.parse(stdout) : undefined };
}

for (const file of ${JSON.stringify(files).replaceAll(",", ", ")}) {
  test(\`\${file}: a scripted model finds nothing wrong\`, () => {
    const { status, stderr, result } = cria("check-env", file);
    assert.equal(status, 0, stderr || JSON.stringify(result, null, 2));
    assert.equal(result.errors, 0);
  });
}

test("the policy has conversations that end", () => {
  const folder = mkdtempSync(join(tmpdir(), "environment-"));
  const out = join(folder, "trajectories.jsonl");
  const { status, stderr, result } = cria("rollout", "config.yaml", "--rows", "8", "--out", out, "trainer.threads=1");
  assert.equal(status, 0, stderr);
  assert.equal(result.failed, 0);
${calls}  assert.equal(readFileSync(out, "utf8").trim().split("\\n").length, result.trajectories);
  rmSync(folder, { recursive: true });
});
`;
}
