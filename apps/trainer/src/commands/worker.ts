import { setTimeout as delay } from "node:timers/promises";
import type { JobBus } from "@cria/cluster";
import { ClusterError } from "@cria/core";
import type { Report } from "@cria/trainer";
import { checkArgument } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { type BusAddress, nameBus, openBusAs, readBusArgs, requiredBusArgs } from "../cluster/bus-args.js";
import { WorkerLog } from "../cluster/worker-log.js";
import { showEvents } from "../terminal/show-events.js";
import { readDevice, readNumber } from "./read-options.js";
import { commonArgs, runCommand } from "./run-command.js";

/** Time between two attempts to reach a missing bus. */
const AWAY_MS = 1000;

const args = {
  ...requiredBusArgs,
  slots: { type: "string", description: "Conversations at once (default: the training's config)" },
  "model-dir": {
    type: "string",
    description:
      "Folder to search and store models in (default: the hub's cache and the working directory; the user's cache)",
  },
  code: {
    type: "string",
    description:
      "Folder of the user code (tools, interactions, agents), or a folder of such folders (default: the working directory)",
  },
  threads: { type: "string", description: "Native threads (default: all cores)" },
  device: { type: "string", description: "auto, cpu, cuda, metal or vulkan (default: auto)" },
  id: { type: "string", description: "Name of this worker (default: the machine's, and a random part)" },
  ...commonArgs,
} as const;

/** Text below the options in its help. */
export const workerNotes = `cria worker --bus nats://host:4222
cria worker --bus tls://host:4222 --ca ca.pem --nkey worker.nk --code my-task --model-dir models

It helps any training on the bus: cria train config.yaml --bus ... It joins and leaves at any time. Code does not travel: the code of
a config's tools and agents must be in --code, unchanged from the coordinator, or be installed. Without it, or with another CPU
kernel, it does the other jobs; cria workers shows what it lacks. Ctrl-C or SIGTERM lets its jobs end; a second one gives them back.`;

export const workerCommand = defineCommand({
  meta: { name: "worker", description: "Help trainings on a bus: hold conversations, compute scores and gradients" },
  args,
  run: ({ args: given }) =>
    runCommand(
      given,
      async (signal, again) => {
        const address = readBusArgs(given);
        const options = {
          id: given.id,
          slots: readNumber("slots", given.slots, { whole: true, least: 1, most: 256 }),
          threads: readNumber("threads", given.threads, { whole: true, least: 1 }),
          device: readDevice(given.device),
          modelDir: given["model-dir"] && checkArgument("--model-dir", given["model-dir"]),
          folder: given.code && checkArgument("--code", given.code),
        };
        const report = showEvents({ silent: given.json });
        const bus = await reach(address, report, signal);
        const log = new WorkerLog(nameBus(address), { json: given.json === true });
        try {
          // Loads the engine only when it is needed.
          const { startWorker } = await import("@cria/cluster");
          const worker = await startWorker(bus, { ...options, report, onStatus: (status) => log.show(status) });
          again.addEventListener("abort", () => void worker.close(), { once: true });
          signal.addEventListener("abort", () => void worker.drain(), { once: true });
          if (signal.aborted) void worker.drain();
          await worker.done;
          // It was shut out: this process did not close the bus.
          if (bus.closed.aborted) throw bus.closed.reason;
        } finally {
          log.end();
          await bus.close();
        }
      },
      { drains: true },
    ),
});

/**
 * Waits for a server, and for a coordinator that creates the bus.
 * @throws ClusterError for problems that waiting does not solve.
 */
async function reach(address: BusAddress, report: Report, signal: AbortSignal): Promise<JobBus> {
  let told: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await openBusAs("worker", address, {
        waitMs: 0,
        onProblem: ({ message }) => report({ type: "warning", text: message }),
      });
    } catch (error) {
      const { code, message } = error as ClusterError;
      if (!(error instanceof ClusterError) || (code !== "cluster/no-bus" && code !== "cluster/unreachable"))
        throw error;
      if (told !== code) report({ type: "notice", text: `waiting for ${nameBus(address)}\n  ${message}` });
      told = code;
    }
    await delay(AWAY_MS, undefined, { signal });
  }
}
