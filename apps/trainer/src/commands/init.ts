import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { createInterface } from "node:readline/promises";
import { ConfigError } from "@cria/core";
import { defineCommand } from "citty";
import { type Scaffold, scaffoldEnvironment } from "../init/scaffold-environment.js";
import { colors as pc } from "../terminal/colors.js";
import { commonArgs, runCommand } from "./run-command.js";

const DEFAULT_NAME = "my-task";

const args = {
  dir: {
    type: "positional",
    description: `A new folder; its name becomes the environment's (default: ${DEFAULT_NAME}; asked for on a terminal)`,
    required: false,
  },
  model: {
    type: "string",
    description:
      "A GGUF, or hf:<owner>/<model>:<quantisation>, to fit lengths, tool format and layers to (default: the embedded policy, a toy)",
  },
  vision: {
    type: "boolean",
    description: "A task of pictures, with a tool that zooms into them",
  },
  mmproj: {
    type: "string",
    description:
      "With --vision: the projector of --model, a GGUF or its address (default: the embedded policy's, a toy)",
  },
  "from-mcp": {
    type: "string",
    description: 'Start from the tools of an MCP server: "npx -y server args", or its URL',
  },
  "from-ai-sdk": {
    type: "string",
    description: "Start from the AI SDK tools that a module exports: ./agent.ts, or ./agent.ts#export",
  },
  tools: { type: "string", description: "The tools to take, as a,b (default: all that may be called)" },
  ...commonArgs,
} as const;

export const initCommand = defineCommand({
  meta: { name: "init", description: "Create an environment that runs at once: tools, rows, a judge, config, test" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const { model, "from-mcp": fromMcp, "from-ai-sdk": fromAiSdk } = given;
      checkSources(fromMcp, fromAiSdk, given.tools);
      checkVision(given);
      const folder = given.dir ?? (await askName(signal));
      const tools = given.tools === undefined ? null : given.tools.split(",").map((name) => name.trim());
      const made = await scaffoldEnvironment(folder, {
        ...{ model, fromMcp, fromAiSdk, tools },
        vision: given.vision === true,
        mmproj: given.mmproj,
      });
      if (given.json) console.log(JSON.stringify(made));
      else print(made);
    }),
});

function checkSources(fromMcp: string | undefined, fromAiSdk: string | undefined, tools: string | undefined): void {
  if (fromMcp !== undefined && fromAiSdk !== undefined)
    throw refuse("--from-mcp and --from-ai-sdk", "exclude each other", {
      expected: "one of them",
      received: "both",
      remedy: "start from one, and add the other to tools.yaml",
    });
  if (tools !== undefined && fromMcp === undefined && fromAiSdk === undefined)
    throw refuse("--tools", "chooses among existing tools", {
      expected: "--from-mcp or --from-ai-sdk with it",
      received: "neither",
      remedy: "add one of them, or leave --tools out",
    });
}

/** Checks the options about images: a model sees by its own projector. */
function checkVision(given: {
  vision?: boolean;
  model?: string;
  mmproj?: string;
  "from-mcp"?: string;
  "from-ai-sdk"?: string;
}): void {
  const { vision = false, model, mmproj } = given;
  const source = ["from-mcp", "from-ai-sdk"].find((name) => given[name as "from-mcp"] !== undefined);
  if (vision && source)
    throw refuse(`--vision and --${source}`, "exclude each other", {
      expected: "one of them",
      received: "both",
      remedy: "leave one out; with --vision, add the tools to tools.yaml later",
    });
  if (mmproj !== undefined && !vision)
    throw refuse("--mmproj", "is for tasks of pictures", {
      expected: "--vision with it",
      received: "no --vision",
      remedy: "add --vision, or leave --mmproj out",
    });
  if (vision && (model === undefined) !== (mmproj === undefined))
    throw refuse("--model and --mmproj", "go together in a task of pictures", {
      expected: "both, or neither for the embedded policy",
      received: model === undefined ? "only --mmproj" : "only --model",
      remedy: `add --${model === undefined ? "model" : "mmproj"}`,
    });
}

function refuse(
  subject: string,
  problem: string,
  details: Record<"expected" | "received" | "remedy", string>,
): ConfigError {
  return new ConfigError(problem, { code: "config/bad-argument", subject, ...details });
}

/** Asks for a name, if there is a user to ask. */
async function askName(signal: AbortSignal): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return DEFAULT_NAME;
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await reader.question(`name of the new environment (${DEFAULT_NAME}): `, { signal });
    return answer.trim() || DEFAULT_NAME;
  } finally {
    reader.close();
  }
}

function print({ name, folder, files, remarks }: Scaffold): void {
  const place = relative(process.cwd(), folder) || ".";
  console.log(`${pc.bold(name)} is in ${place}: ${files.join(", ")}`);
  for (const remark of remarks) console.log(`  ${remark}`);
  console.log("\nnext");
  const steps = [
    [`cd ${place}`, ""],
    ...(isInstalled(folder) ? [] : [["npm install", "cria, and TypeScript for the editor"]]),
    ["npm run check", "a scripted model tries the tools"],
    ["npm run rollout", "conversations of the model"],
    ["npm run train", "training"],
  ];
  for (const [command, what] of steps) console.log(`  ${command!.padEnd(18)} ${pc.dim(what!)}`.trimEnd());
}

/** True if npm finds the environment's dependencies in this folder or above it. */
function isInstalled(folder: string): boolean {
  const { resolve } = createRequire(join(folder, "package.json"));
  try {
    for (const name of ["cria", "typescript"]) resolve(`${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}
