/** The worker of `measure-bus.ts`: `trivial-worker.ts URL PREFIX SLOTS`. Prints its CPU seconds when its input ends. */
import { openNatsBus } from "@cria/cluster";
import { trivialJob } from "./trivial-job.js";

const [url, prefix, slots] = process.argv.slice(2);
const bus = await openNatsBus({ servers: url!, role: "worker", prefix: prefix! });
const worker = await bus.work({
  id: "measured",
  class: "any",
  versions: {},
  jobs: [{ kind: trivialJob, slots: Number(slots), run: async ({ index }) => ({ value: { index } }) }],
});
const before = process.cpuUsage();
console.log("ready");
for await (const _ of process.stdin);
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1e6);
await worker.drain();
await bus.close();
