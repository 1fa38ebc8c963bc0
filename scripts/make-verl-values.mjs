// Installs verl's newest release and makes packages/algorithms/fixtures/verl.json.gz by its functions again; prints which values are
// others than before. The tests in packages/algorithms/src/verl-values compare.
//   node scripts/make-verl-values.mjs
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fetchPython } from "./fetch-real-model.mjs";
import { realPython } from "./real-model.mjs";

fetchPython({ verl: "newest" });
const script = join(import.meta.dirname, "..", "packages", "algorithms", "fixtures", "make_from_verl.py");
execFileSync(realPython, ["-W", "ignore", script], { stdio: "inherit" });
