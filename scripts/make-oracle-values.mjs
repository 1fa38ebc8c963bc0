// Installs the newest release of verl or TRL and makes packages/algorithms/fixtures/{verl,trl}.json.gz by its functions
// again; prints which values are others than before. The tests in packages/algorithms/src/{verl,trl}-values compare.
//   node scripts/make-oracle-values.mjs verl|trl
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fetchPython } from "./fetch-real-model.mjs";
import { realPython } from "./real-model.mjs";

const [oracle] = process.argv.slice(2);
if (oracle !== "verl" && oracle !== "trl") throw new Error(`expected verl or trl, received ${oracle}`);
fetchPython({ [oracle]: "newest" });
const script = join(import.meta.dirname, "..", "packages", "algorithms", "fixtures", `make_from_${oracle}.py`);
execFileSync(realPython, ["-W", "ignore", script], { stdio: "inherit" });
