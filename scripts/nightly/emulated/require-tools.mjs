import { spawnSync } from "node:child_process";

/** Ends a script that lacks programs, and says which packages have them. `tools`: the package of each program. */
export function requireTools(script, tools) {
  const missing = Object.entries(tools).filter(([name]) => spawnSync(name, ["--version"]).status !== 0);
  if (missing.length === 0) return;
  const [programs, packages] = [0, 1].map((i) => missing.map((tool) => tool[i]));
  console.error(`${script}: missing: ${programs.join(", ")}; apt-get install ${packages.join(" ")}`);
  process.exit(1);
}
