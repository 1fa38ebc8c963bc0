// Installs TRL's newest release and makes packages/algorithms/fixtures/trl.json.gz by its trainer again; prints which values are others
// than before. The tests in packages/algorithms/src/trl-values compare.
//   node scripts/make-trl-values.mjs
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fetchPython } from "./fetch-real-model.mjs";
import { realPython } from "./real-model.mjs";

fetchPython({ trl: "newest" });
const script = join(import.meta.dirname, "..", "packages", "algorithms", "fixtures", "make_from_trl.py");
execFileSync(realPython, ["-W", "ignore", script], { stdio: "inherit" });
