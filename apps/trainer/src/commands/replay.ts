import { ConfigError } from "@cria/core";
import { type DumpLine, readDump } from "@cria/records";
import { openReplay, type Replay, type ReplayResult } from "@cria/trainer";
import { checkArgument } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { readEdit, readNumber, resolveReplacement, type TokenEdit } from "../replay/read-replay-args.js";
import { drawConversation, drawLegend } from "../show/draw-conversation.js";
import { findDumps } from "../show/find-dumps.js";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { showEvents } from "../terminal/show-events.js";
import { findWidth } from "../terminal/wrap-text.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "positional", description: "A run folder of cria train or cria demo", required: true },
  step: { type: "string", description: "The step (default: the newest)" },
  trajectory: {
    type: "string",
    description: "The conversation: its line in the step's dump, from 0, or <uid>#<sample> (default: all of the step)",
  },
  validation: { type: "boolean", description: "Use the step's validation instead of its training" },
  until: { type: "string", description: "Only tokens before this index" },
  edit: { type: "string", description: "Replace a token and continue from there: 57=<text, or a token id>" },
  seed: { type: "string", description: "Seed of the draws after --edit (default: derived from the conversation)" },
  "live-tools": {
    type: "boolean",
    description: "With --edit: run tools and interaction, and compute the reward",
  },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const replayNotes = `EXAMPLES

  cria replay runs/demo --step 30 --trajectory 5           replays it, to equal token ids and logprobs
  cria replay runs/demo --step 30                          all conversations of the step
  cria replay runs/demo --step 30 --trajectory 'calculator/0:12#3' --edit 140=7 --live-tools
                                                           with token 140 changed, and sampled from there

The weights are the policy's at that step: those of the checkpoint before it, with the steps in between trained again. Answers of
users and tools are read from the dump. With --edit recorded answers are used while the calls equal the record; after another call
--live-tools is needed. "57=7" puts token 7, 57="7" the text. The exit code is 1 if a conversation differs from its record.`;

export const replayCommand = defineCommand({
  meta: { name: "replay", description: "Replay a recorded conversation, to equal bits, or with a changed token" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const run = checkArgument("<run>", String(given.run));
      const validation = given.validation === true;
      const edit = given.edit === undefined ? undefined : readEdit(given.edit);
      const until = given.until === undefined ? undefined : readNumber("--until", given.until);
      const seed = given.seed === undefined ? undefined : readNumber("--seed", given.seed) >>> 0;
      checkTogether({ edit, trajectory: given.trajectory, until, seed, live: given["live-tools"] });
      const step = given.step === undefined ? undefined : readNumber("--step", given.step);
      const [dump] = findDumps(run, { step, validation });
      const lines = await readLines(dump!.file, given.trajectory);
      const replay = await openReplay(run, { report: showEvents({ silent: given.json }), signal });
      try {
        const options = { validation, signal };
        if (edit)
          await goOn(replay, lines[0]!, edit, { ...options, seed, liveTools: given["live-tools"], json: given.json });
        else report(replay, await replay.replay(lines, { ...options, until }), given.json);
      } finally {
        await replay.close();
      }
    }),
});

interface Given {
  edit: TokenEdit | undefined;
  trajectory: string | undefined;
  until: number | undefined;
  seed: number | undefined;
  live: boolean | undefined;
}

function checkTogether({ edit, trajectory, until, seed, live }: Given): void {
  const refuse = (subject: string, expected: string, received: string) =>
    new ConfigError("does not go with the other options", {
      code: "config/bad-argument",
      subject,
      expected,
      received,
      remedy: `change that, or leave ${subject} out`,
    });
  if (edit && trajectory === undefined)
    throw refuse("--edit", "one conversation, named by --trajectory", "all conversations of the step");
  if (edit && until !== undefined) throw refuse("--until", "a replay without --edit", "--edit");
  if (!edit && live) throw refuse("--live-tools", "--edit with it", "a replay with the recorded answers");
  if (!edit && seed !== undefined) throw refuse("--seed", "--edit with it", "a replay with the recorded seed");
}

/** @param name a line's number, or `<uid>#<sample>`; undefined: all. @throws ConfigError when there is none. */
async function readLines(file: string, name: string | undefined): Promise<DumpLine[]> {
  const found: DumpLine[] = [];
  let number = 0;
  for await (const line of readDump(file)) {
    if (name === undefined || name === String(number) || name === `${line.uid}#${line.sample}`) found.push(line);
    number++;
  }
  if (found.length > 0) return found;
  throw new ConfigError("is not a conversation of this step", {
    code: "config/bad-argument",
    subject: "--trajectory",
    expected: `0 to ${number - 1}, or <uid>#<sample> as cria show names them`,
    received: name ?? "none",
  });
}

function report(replay: Replay, results: readonly ReplayResult[], json: boolean | undefined): void {
  const other = results.filter(({ equal }) => !equal);
  if (other.length > 0) process.exitCode = 1;
  if (json) {
    const counts = { equal: results.length - other.length, of: results.length, trained_steps: replay.trainedSteps };
    console.log(JSON.stringify({ ...counts, conversations: results }));
    return;
  }
  const sum = (pick: (result: ReplayResult) => number) => results.reduce((total, result) => total + pick(result), 0);
  const tokens = `${sum(({ tokens }) => tokens)} tokens, ${sum(({ sampled }) => sampled)} of them sampled`;
  const text = `${results.length - other.length} of ${results.length} conversations are equal, ids and logprobs`;
  console.log(`${other.length === 0 ? pc.green(text) : pc.red(text)} (${tokens})`);
  for (const result of other.slice(0, 5)) console.log(`  ${describeDifference(result, replay)}`);
}

function describeDifference({ uid, sample, difference, otherwise }: ReplayResult, { engine }: Replay): string {
  if (!difference) {
    const { field, recorded, replayed } = otherwise!;
    const [before, now] = [recorded, replayed].map((value) => JSON.stringify(value) ?? "nothing");
    return makePrintableLine(`${uid}#${sample}, ${field}: recorded ${before}, now ${now}`);
  }
  const { token, recorded, replayed } = difference;
  const show = (side: typeof recorded) =>
    side === null ? "nothing" : `${JSON.stringify(engine.detokenize([side.id]))} (${side.id}, logprob ${side.logprob})`;
  return makePrintableLine(`${uid}#${sample}, token ${token}: recorded ${show(recorded)}, now ${show(replayed)}`);
}

async function goOn(
  replay: Replay,
  line: DumpLine,
  { token, replacement }: TokenEdit,
  options: { validation: boolean; seed?: number; liveTools?: boolean; json?: boolean; signal: AbortSignal },
): Promise<void> {
  const { json, ...given } = options;
  const id = resolveReplacement(replacement, replay);
  const onOtherAnswer = (recorded: string, live: string) =>
    process.stderr.write(
      `warning: a tool answered differently than recorded; the recorded answer is used\n  ${makePrintableLine(recorded)}\n  ${makePrintableLine(live)}\n`,
    );
  const { line: changed } = await replay.fork(line, token, { ...given, replacement: id, onOtherAnswer });
  if (json) {
    console.log(JSON.stringify({ token, replacement: id, trained_steps: replay.trainedSteps, conversation: changed }));
    return;
  }
  const show = (token: number) => makePrintableLine(JSON.stringify(replay.engine.detokenize([token])));
  console.log(`${pc.bold(`token ${token}`)}: ${show(line.token_ids[token]!)} was changed to ${show(id)}`);
  console.log(drawLegend());
  const shown = { line: changed, file: "", group: [], schemas: line.tool_schemas };
  for (const text of drawConversation(shown, { width: findWidth() })) console.log(text);
  if (!given.liveTools) console.log(pc.dim("no reward: it is computed with --live-tools"));
}
