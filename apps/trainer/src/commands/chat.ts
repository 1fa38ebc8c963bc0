import { fetchModel } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { InteractiveChat } from "../chat/interactive-chat.js";
import { type Chat, openChat } from "../chat/open-chat.js";
import { chatByLines } from "../chat/piped-chat.js";
import { chatInTerminal } from "../chat/terminal-chat.js";
import { colors as pc } from "../terminal/colors.js";
import { makePrintable } from "../terminal/printable-text.js";
import { showEvents } from "../terminal/show-events.js";
import { readDevice, readNumber, readProjector } from "./read-options.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  target: {
    type: "positional",
    description:
      "A model or adapter (GGUF, or hf:<owner>/<model>), a run or checkpoint, a config (default: the embedded policy)",
    required: false,
  },
  step: { type: "string", description: "The run's checkpoint after this step (default: the newest)" },
  adapter: { type: "string", description: "A LoRA adapter (GGUF) on the model" },
  role: { type: "string", description: "The role whose adapter is taken, of a run that trained one for each" },
  base: { type: "string", description: "The base model of an adapter, or of a moved run" },
  mmproj: {
    type: "string",
    description: "Projector that encodes images for the model (default: that of the run or config)",
  },
  tools: { type: "string", description: "tools.yaml (default: those of the run or config)" },
  format: { type: "string", description: "Format of tool calls (default: the run's, else the chat template's)" },
  system: { type: "string", description: 'System message (default: that of the run\'s first row; "": none)' },
  temperature: { type: "string", description: "0 is greedy (default: the run's, else 0.7)" },
  "top-p": {
    type: "string",
    description: "Sample from the likeliest tokens whose probabilities add up to this (default: the run's)",
  },
  "max-tokens": { type: "string", description: "Most tokens of an answer (default: the rest of the context)" },
  seed: { type: "string", description: "The same seed and messages give the same answers (default: random)" },
  context: { type: "string", description: "Most tokens of the conversation (default: the model's, at most 4096)" },
  device: { type: "string", description: "auto, cpu, cuda, metal or vulkan (default: the run's, else auto)" },
  threads: { type: "string", description: "Native threads (default: all cores)" },
  ...commonArgs,
  json: { type: "boolean", description: "One JSON object per turn on stdout; messages from stdin, one per line" },
} as const;

/** Text below the options in its help. */
export const chatNotes = `cria chat                                        the embedded policy with its calculator
cria chat model.gguf --tools tools.yaml
cria chat runs/my-task/default --step 20         with the run's model, tools, sampling and system message
echo "2+2?" | cria chat model.gguf --json        one message per line, for scripts

With a projector (--mmproj, or the config's) /image cat.png shows the model a picture with the next message.
In a terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends.`;

export const chatCommand = defineCommand({
  meta: {
    name: "chat",
    description: "Chat with a model, an adapter or a trained run, with its tools",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const isTalk = process.stdin.isTTY === true && process.stdout.isTTY === true && !given.json;
      if (isTalk) process.stderr.write(pc.dim("loading ...\r"));
      const report = showEvents({ silent: given.json });
      const chat = await openChat({
        target: given.target,
        mmproj: await readProjector(given.mmproj, { report, signal }),
        step: readNumber("step", given.step, { whole: true, least: 0 }),
        adapter: given.adapter,
        role: given.role,
        base: given.base,
        tools: given.tools,
        format: given.format,
        system: given.system,
        temperature: readNumber("temperature", given.temperature, { least: 0 }),
        topP: readNumber("top-p", given["top-p"], { least: 0, most: 1 }),
        maxTokens: readNumber("max-tokens", given["max-tokens"], { whole: true, least: 1 }),
        seed: readNumber("seed", given.seed, { whole: true, least: 0 }),
        context: readNumber("context", given.context, { whole: true, least: 16 }),
        device: readDevice(given.device),
        threads: readNumber("threads", given.threads, { whole: true, least: 1 }),
        say: (text) => process.stderr.write(`${text}\n`),
        fetch: (address) => fetchModel(address, { report, signal }),
      });
      try {
        const session = new InteractiveChat(chat);
        try {
          if (isTalk) {
            introduce(chat);
            process.exitCode = await chatInTerminal(session, { input: process.stdin, output: process.stdout, signal });
            signal.throwIfAborted();
          } else {
            const write = (text: string) => void process.stdout.write(text);
            await chatByLines(session, { input: process.stdin, write, json: given.json === true, signal });
          }
        } finally {
          await session.close();
        }
      } finally {
        await chat.dispose();
      }
    }),
});

/** Introduces the model on a terminal. */
export function introduce({ name, engine, tools, system, example, sampling }: Chat): void {
  const { contextSize, device } = engine.info;
  const line = (label: string, text: string) => console.log(`${pc.dim(label.padEnd(7))} ${makePrintable(text)}`);
  console.log(`${pc.bold("cria chat")} with ${makePrintable(name)}`);
  line("model", `${engine.info.name}, ${contextSize} tokens, ${device}`);
  line("sampled", `temperature ${sampling.temperature}, top-p ${sampling.topP}, seed ${sampling.seed}`);
  if (engine.images) line("images", `by ${engine.images.info.path}: /image cat.png`);
  if (tools.size > 0) line("tools", [...tools.keys()].join(", "));
  if (system !== null) line("system", system.length > 300 ? `${system.slice(0, 300)} ...` : system);
  if (name.startsWith("the embedded policy")) {
    line("try", "There are 70 marbles in a box and 28 marbles in a bag. How many marbles in total?");
    line("", "It hardly uses its tool yet: cria demo trains it, then cria chat runs/demo");
  } else if (example !== null) line("try", example);
  if (engine.info.name === "cria-tiny")
    line("knows", "word problems like the demo's, and a code game; with half a million parameters nothing else");
  console.log(pc.dim("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends"));
}
