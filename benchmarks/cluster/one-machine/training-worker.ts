/**
 * A worker of a training in a separate process, like `cria worker`: `training-worker.ts URL PREFIX OPTIONS`. It leaves
 * when its input ends.
 */
import { openNatsBus, startWorker } from "@cria/cluster";
import type { WorkerSetup } from "./worker-process.js";

const [url, prefix, options] = process.argv.slice(2);
const setup = JSON.parse(options!) as WorkerSetup;
const bus = await openNatsBus({ servers: url!, role: "worker", prefix: prefix! });
const worker = await startWorker(bus, {
  ...setup,
  device: "cpu",
  report: (event) => {
    if (event.type === "warning") console.error(event.text);
  },
});
for await (const _ of process.stdin);
await worker.close();
await bus.close();
