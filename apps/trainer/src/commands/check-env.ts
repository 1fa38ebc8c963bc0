import { ConfigError } from "@cria/core";
import { disposeTools } from "@cria/tools";
import { defineCommand } from "citty";
import { checkInteraction } from "../check-env/check-interaction.js";
import { type CheckOptions, checkTool, defaultCheckOptions } from "../check-env/check-tool.js";
import type { EnvReport } from "../check-env/finding.js";
import { loadSubjects } from "../check-env/load-subjects.js";
import { colors as pc } from "../terminal/colors.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  file: {
    type: "positional",
    description:
      "A tool (my-tool.ts#myTool), a list (agent.ts#tools), a module (all its exports), a YAML file of tools or interactions, or an MCP server. A server is given by URL, quoted command line, or JSON file of mcpServers",
    required: true,
  },
  config: { type: "string", description: "JSON: the config for the class's constructor" },
  kwargs: {
    type: "string",
    description: "JSON: a row's create_kwargs or interaction_kwargs, for example ground_truth",
  },
  args: { type: "string", description: "JSON: arguments of a call (default: made from the tool's schema)" },
  say: { type: "string", description: "JSON list: the model's answers to an interaction, in turn" },
  timeout: {
    type: "string",
    description: "Most seconds of a call",
    default: String(defaultCheckOptions.timeoutS),
  },
  ...commonArgs,
} as const;

export const checkEnvCommand = defineCommand({
  meta: {
    name: "check-env",
    description: "Check a tool or an interaction with a scripted model",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const options: CheckOptions = {
        ...defaultCheckOptions,
        timeoutS: readSeconds(given.timeout),
        kwargs: readJson("--kwargs", given.kwargs, isRecord, "an object") ?? {},
      };
      const call = readJson("--args", given.args, isRecord, "an object");
      const answers = readJson("--say", given.say, isTexts, "a list of texts");
      const config = readJson("--config", given.config, isRecord, "an object") ?? {};
      const { tools, interactions } = await loadSubjects(given.file, config);
      const reports: EnvReport[] = [];
      try {
        for (const tool of tools) reports.push(await checkTool(tool, options, call));
        for (const interaction of interactions) reports.push(await checkInteraction(interaction, options, answers));
      } finally {
        // Servers and workers would keep the process alive.
        await disposeTools(tools);
      }
      signal.throwIfAborted();
      const errors = reports.flatMap((report) => report.findings).filter((finding) => finding.level === "error").length;
      if (given.json) console.log(JSON.stringify({ ok: errors === 0, errors, reports }));
      else for (const report of reports) print(report);
      if (errors > 0) process.exitCode = 1;
    }),
});

function print({ kind, name, conversations, calls, findings }: EnvReport): void {
  const errors = findings.filter((finding) => finding.level === "error").length;
  const verdict = errors > 0 ? pc.red(`${errors} errors`) : pc.green("ok");
  console.log(`${kind} ${pc.bold(name)}: ${verdict} (${calls} calls in ${conversations} conversations)`);
  for (const { level, subject, problem, remedy } of findings) {
    const label = { error: pc.red("error  "), warning: pc.yellow("warning"), hint: pc.dim("hint   ") }[level];
    console.log(`  ${label} ${subject}: ${problem}`);
    if (remedy) console.log(`          try: ${remedy}`);
  }
}

function readSeconds(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw badArgument("--timeout", "a number of seconds", text);
}

function readJson<T>(
  name: string,
  text: string | undefined,
  fits: (value: unknown) => value is T,
  expected: string,
): T | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (fits(value)) return value;
  } catch {
    // Reported below, with the text.
  }
  throw badArgument(name, `${expected} as JSON`, text);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((entry) => typeof entry === "string");
}

function badArgument(subject: string, expected: string, received: string): ConfigError {
  return new ConfigError("has a wrong value", { code: "config/bad-argument", subject, expected, received });
}
