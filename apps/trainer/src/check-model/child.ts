// Runs one check for run-in-child.ts, which reads its messages.
import { allChecks } from "./all-checks.js";
import { runHere } from "./run-check.js";
import type { ChildJob, ChildMessage } from "./run-in-child.js";

// The parent is gone, and nobody will read the result.
process.on("disconnect", () => process.exit(1));

const { check: name, ...job } = JSON.parse(process.argv[2]!) as ChildJob;
const say = (message: ChildMessage) => process.send!(message);
const check = allChecks.find((each) => each.name === name)!;
const findings = await runHere(check, job, {
  begin: (row) => say({ type: "begin", row }),
  advance: (share) => say({ type: "advance", share }),
});
const last: ChildMessage = { type: "done", findings };
process.send!(last, undefined, undefined, () => process.exit());
