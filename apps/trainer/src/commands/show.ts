import { ConfigError } from "@cria/core";
import { parseFilter } from "@cria/records";
import { filterFields } from "@cria/records/internal";
import { diagnoseRun } from "@cria/trainer";
import { defineCommand } from "citty";
import { drawConversation, drawLegend } from "../show/draw-conversation.js";
import { type FindDumpsOptions, findDumps } from "../show/find-dumps.js";
import { type Selection, selectConversations } from "../show/select-conversations.js";
import { colors as pc } from "../terminal/colors.js";
import { describeProblem } from "../terminal/describe-problem.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { quoteWord } from "../terminal/quote-word.js";
import { findWidth } from "../terminal/wrap-text.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "positional", description: "A run folder, or a file of conversations (JSONL)", required: true },
  step: { type: "string", description: "A step, or all (default: the newest)" },
  validation: { type: "boolean", description: "Conversations of validations instead of the training's" },
  filter: { type: "string", description: "Filter for conversations: 'reward<1 && tool_errors>0' (fields: below)" },
  worst: { type: "string", description: "Number of conversations, those with the lowest rewards" },
  prompt: { type: "string", description: "All conversations of one prompt, by its uid" },
  limit: { type: "string", description: "Most conversations (default: 3; all of a --prompt)" },
  raw: { type: "boolean", description: "Every token as text, the template's too" },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const showNotes = `EXAMPLES

  cria show runs/p/e                                the first three of the newest step
  cria show runs/p/e --step 20 --worst 5            the five with the lowest rewards
  cria show runs/p/e --filter 'unknown_tools>0'     those that call unknown tools
  cria show runs/p/e --validation --prompt my-task/0:7
  cria show trajectories.jsonl --json | jq .conversations[0].messages

FILTERS

  && || ! ( )   < <= > >= == !=   ~ (a text contains another; !~: does not)   1.5   "text"   true   false   null

${[...filterFields].map(([name, field]) => `  ${name.padEnd(18)} ${field.meaning}`).join("\n")}
  parts.<name>       a part of the reward: outcome, length, tools, turns, a judge's, or a number that it returned
  extra.<name>       other numbers of the reward function
  metrics.<name>     counters of the conversation (docs/metrics.md)
`;

export const showCommand = defineCommand({
  meta: { name: "show", description: "Show conversations of a run, with the parts of their rewards" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async () => {
      const filter = given.filter === undefined ? null : parseFilter(given.filter, "--filter");
      const worst = given.worst === undefined ? undefined : readCount("--worst", given.worst);
      const some = given.prompt === undefined ? 3 : Number.POSITIVE_INFINITY;
      const limit = given.limit === undefined ? (worst ?? some) : readCount("--limit", given.limit);
      const options: FindDumpsOptions = { validation: given.validation === true };
      if (given.step !== undefined) options.step = readStep(given.step);
      const files = findDumps(String(given.run), options);
      const selection = await selectConversations(files, {
        filter,
        uid: given.prompt,
        limit: Math.min(limit, worst ?? limit),
        worst: worst !== undefined,
      });
      if (given.json) console.log(JSON.stringify(describeSelection(selection)));
      else {
        print(
          selection,
          files.map(({ file }) => file),
          given.raw === true,
        );
        await printCoach(String(given.run));
      }
    }),
});

function describeSelection({ conversations, ...counts }: Selection): object {
  return {
    ...counts,
    conversations: conversations.map(({ line, file, group, schemas }) => ({
      ...line,
      file,
      tool_schemas: schemas,
      group: group.map(({ reward }) => reward),
    })),
  };
}

function print(selection: Selection, files: readonly string[], raw: boolean): void {
  const { conversations, matched, total, failed, reward, success } = selection;
  const width = findWidth();
  const where = files.length === 1 ? files[0]! : `${files[0]} to ${files.at(-1)}`;
  const facts = [
    `${total} conversations`,
    ...(reward === null ? [] : [`mean reward ${reward.toFixed(3)}`]),
    ...(success === null ? [] : [`success ${success.toFixed(3)}`]),
    ...(failed > 0 ? [pc.red(`${failed} failed`)] : []),
  ];
  console.log(`${pc.bold(makePrintableLine(where))}: ${facts.join(", ")}`);
  if (conversations.length > 0) console.log(drawLegend());
  for (const conversation of conversations)
    for (const line of drawConversation(conversation, { width, raw })) console.log(line);
  if (conversations.length === 0) console.log("no conversation matches");
  else if (matched > conversations.length)
    console.log(pc.dim(`${conversations.length} of ${matched} shown: --limit ${matched} shows all of them`));
}

/** Prints the gravest finding about a run folder. */
async function printCoach(run: string): Promise<void> {
  const [first, ...others] = await diagnoseRun(run);
  if (!first) return;
  console.log(`\n${describeProblem(first, run, findWidth())}`);
  if (others.length > 0) console.log(pc.dim(`${others.length} more: cria coach ${quoteWord(run)}`));
}

function readStep(text: string): number | "all" {
  if (text === "all") return "all";
  const step = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(step)) return step;
  throw makeBadArgument("--step", "a whole number, or all", text);
}

function readCount(option: string, text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1) return count;
  throw makeBadArgument(option, "a whole number of at least 1", text);
}

function makeBadArgument(subject: string, expected: string, received: string): ConfigError {
  return new ConfigError("has a wrong value", { code: "config/bad-argument", subject, expected, received });
}
