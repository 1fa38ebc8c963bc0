import { defineCommand } from "citty";
import { type BusAddress, nameBus, openBusAs, readBusArgs, requiredBusArgs } from "../cluster/bus-args.js";
import { type BusState, followBusState, readBusState } from "../cluster/bus-state.js";
import { drawBus } from "../cluster/draw-bus.js";
import { watchBusOnScreen } from "../cluster/watch-bus.js";
import { findWidth } from "../terminal/wrap-text.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  ...requiredBusArgs,
  follow: { type: "boolean", description: "Keep showing the workers; q or Ctrl-C ends it" },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const workersNotes = `cria workers --bus nats://host:4222
cria workers --bus tls://host:4222 --ca ca.pem --nkey observer.nk --follow

It only reads: a key of the role observer is enough. The coordinator's further data about a run (audits, shut-out workers, traffic)
is in cria view and cria watch.`;

export const workersCommand = defineCommand({
  meta: { name: "workers", description: "List the workers of a bus, and their jobs" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const address = readBusArgs(given);
      // The user wants to know that there is no bus yet, rather than to wait for it.
      const bus = await openBusAs("observer", address, { waitMs: 0 });
      const name = nameBus(address);
      const say = (state: BusState) => {
        if (given.json) console.log(JSON.stringify(describeState(address, state)));
        else console.log(drawBus(name, state, findWidth()).join("\n"));
      };
      try {
        const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !given.json;
        const { stdin: input, stdout: output } = process;
        if (!given.follow) say(await readBusState(bus));
        else if (isTerminal) await watchBusOnScreen(bus, { name, input, output, signal });
        else await followBusState(bus, say, signal);
        // So that the exit code names the signal.
        signal.throwIfAborted();
      } finally {
        await bus.close();
      }
    }),
});

/** The JSON of the state. */
function describeState({ servers, prefix }: BusAddress, state: BusState): object {
  return { bus: { servers, prefix: prefix ?? "cria" }, ...state };
}
