import { dirname, join } from "node:path";
import type { ImageRecord } from "@cria/core";
import { showContent } from "@cria/core/internal";
import type { DumpImage, DumpLine } from "@cria/records";
import { nameImageFile } from "@cria/records/internal";
import { colors as pc } from "../terminal/colors.js";
import { makePrintable, makePrintableLine } from "../terminal/printable-text.js";
import { wrapText } from "../terminal/wrap-text.js";
import type { SelectedConversation } from "./select-conversations.js";
import { type Origin, type ShownMessage, splitTurns } from "./split-turns.js";

export interface DrawOptions {
  /** Columns. */
  width: number;
  /** Every token as text, template included, instead of messages. */
  raw?: boolean;
}

/** Marks in front of each line of text, so that masks are visible without colours too. */
const marks: Record<Origin, string> = { trained: "▌", sampled: "┆", given: " " };
const paint: Record<Origin, (text: string) => string> = {
  trained: pc.green,
  sampled: pc.yellow,
  given: (text) => text,
};
/** Width of the column of speakers. */
const MARGIN = 11;
/** Characters shown of the ground truth, and of judges' notes. */
const LONGEST_VALUE = 300;

/** The meaning of the marks and colours of `drawConversation`. */
export function drawLegend(): string {
  return [
    paint.trained(`${marks.trained} sampled, trained on`),
    paint.sampled(`${marks.sampled} sampled, not trained on`),
    pc.red("✗ a call that failed"),
  ].join("   ");
}

/** A conversation as lines for a terminal; its text cannot control the terminal. */
export function drawConversation(conversation: SelectedConversation, { width, raw = false }: DrawOptions): string[] {
  const { line } = conversation;
  return [
    ...drawTitle(line, width),
    ...drawFacts(conversation, width),
    "",
    ...(raw
      ? drawSpans(line, width)
      : splitTurns(line).flatMap((message) => drawMessage(message, conversation.file, width))),
    "",
  ];
}

function drawTitle(line: DumpLine, width: number): string[] {
  const step = line.step === null ? "" : ` · step ${line.step}`;
  const title = `── ${makePrintableLine(line.uid)} · sample ${line.sample}${step} `;
  return wrapText(title + "─".repeat(Math.max(0, width - title.length)), width).map((part) => pc.bold(part));
}

function drawFacts({ line, group, schemas }: SelectedConversation, width: number): string[] {
  const facts: [string, string][] = [];
  const reward = line.reward === null ? pc.red("none, it failed") : pc.bold(formatNumber(line.reward));
  const advantage = line.advantage === null ? "" : `   advantage ${formatSigned(line.advantage)}`;
  facts.push(["reward", `${reward}${advantage}`]);
  if (line.error !== null) facts.push(["error", makePrintable(line.error)]);
  for (const text of describeReward(line)) facts.push(["", text]);
  if (line.before !== undefined) facts.push(["before", `${describeBefore(line.before)}, before cria rescore`]);
  if (group.length > 1) facts.push(["group", describeGroup(line, group)]);
  if (line.ground_truth !== null) facts.push(["truth", formatValue(line.ground_truth)]);
  const tokens = `${line.token_ids.length - line.prompt_length} tokens`;
  facts.push(["ended by", `${line.finish_reason}${explainEnd(line)}; ${line.num_turns} turns, ${tokens}`]);
  if (line.tools.length > 0) {
    const described = line.tools.map((name) => describeTool(name, schemas));
    facts.push(["tools", makePrintableLine(described.join(", "))]);
  }
  if (line.place !== null) facts.push(["row", makePrintableLine(line.place)]);
  return facts.flatMap(([name, text]) => drawBlock(pc.dim(name.padEnd(MARGIN)), text, width));
}

/** Includes the parameters: after a failed call one asks for the allowed ones. */
function describeTool(name: string, schemas: SelectedConversation["schemas"]): string {
  const schema = schemas.find((entry) => entry.function.name === name);
  const { properties } = (schema?.function.parameters ?? {}) as { properties?: Record<string, unknown> };
  return schema ? `${name}(${Object.keys(properties ?? {}).join(", ")})` : name;
}

function explainEnd({ finish_reason }: DumpLine): string {
  if (finish_reason === "length") return " (no token was left)";
  if (finish_reason === "tool_calls") return " (a call, and no turn was left)";
  return "";
}

/** Part by part: the terms of the reward, the parts of the score, and the judges' notes. */
function describeReward(line: DumpLine): string[] {
  if (line.reward === null) return [];
  const { outcome, length, tools, turns, tool_score, interaction_score } = line.rewards;
  const summands = Object.entries({ outcome, length, tools, turns }).filter(
    ([name, value]) => name === "outcome" || value !== 0,
  );
  const texts = [`= ${summands.map(([name, value]) => `${name} ${formatNumber(value)}`).join(" + ")}`];
  for (const { name, value, weight, by } of line.parts) {
    const weighed = weight === 1 ? "" : ` × ${formatNumber(weight)}`;
    texts.push(`${makePrintableLine(name)} ${formatNumber(value)}${weighed}, by ${makePrintableLine(by)}`);
  }
  if (line.parts.length === 0 && line.score !== null) texts.push(`score ${formatNumber(line.score)}`);
  const isNews = (by: string) => !line.parts.some((part) => part.by === by);
  if (tool_score !== null && isNews("calcReward of the tools"))
    texts.push(`the tools' own score ${formatNumber(tool_score)}`);
  if (interaction_score !== null && isNews("calculateScore of the interaction"))
    texts.push(`the interaction's own score ${formatNumber(interaction_score)}`);
  const told = Object.entries(line.extra).filter(([name]) => name !== "full_prompt" && name !== "tokenization");
  if (told.length > 0)
    texts.push(`told: ${told.map(([name, value]) => `${makePrintableLine(name)} ${formatValue(value)}`).join(", ")}`);
  return texts;
}

function describeBefore({ reward, score }: NonNullable<DumpLine["before"]>): string {
  if (reward === null) return "no reward";
  return `reward ${formatNumber(reward)}${score === null ? "" : `, score ${formatNumber(score)}`}`;
}

function describeGroup(line: DumpLine, group: SelectedConversation["group"]): string {
  const show = (reward: number | null) => (reward === null ? "failed" : formatNumber(reward));
  if (group.length <= 16)
    return group
      .map(({ sample, reward }) => (sample === line.sample ? pc.bold(`[${show(reward)}]`) : show(reward)))
      .join(" ");
  const rewards = group.flatMap(({ reward }) => reward ?? []);
  const mean = rewards.reduce((sum, value) => sum + value, 0) / Math.max(1, rewards.length);
  return `${group.length} conversations, mean ${formatNumber(mean)}, ${formatNumber(Math.min(...rewards))} to ${formatNumber(Math.max(...rewards))}`;
}

function drawMessage(message: ShownMessage, file: string, width: number): string[] {
  const { role, name, pieces, images, failure, rewards } = message;
  const speaker = failure ? pc.red(`✗ ${role}`.padEnd(MARGIN)) : pc.cyan(role.padEnd(MARGIN));
  const lines: string[] = [];
  const add = (text: string, origin: Origin, colour = paint[origin]) => {
    for (const part of wrapText(text, width - MARGIN - 2)) {
      const label = lines.length === 0 ? speaker : " ".repeat(MARGIN);
      lines.push(`${label}${colour(`${marks[origin]} ${part}`)}`.trimEnd());
    }
  };
  const about = [name, failure && failure !== "error" ? failure : undefined].filter((text) => text !== undefined);
  if (about.length > 0) add(makePrintableLine(about.join(": ")), "given", failure ? pc.red : pc.dim);
  for (const { origin, text } of pieces) add(prepareText(text), origin, failure ? pc.red : paint[origin]);
  // Without a file, no paths are shown.
  for (const image of file === "" ? [] : images) add(makePrintableLine(describeImage(image, file)), "given", pc.dim);
  for (const { from, value } of rewards)
    add(
      `${formatSigned(value)} ${from === "tool" ? "step reward of a tool" : "score of the interaction"}`,
      "given",
      pc.dim,
    );
  return lines;
}

/** The place at which a person finds the image. */
function describeImage(image: ImageRecord, file: string): string {
  return `${showContent([{ type: "image", image }])} ${join(dirname(file), nameImageFile(image))}`;
}

function drawSpans({ spans, messages, images }: DumpLine, width: number): string[] {
  const pieces =
    spans.length > 0
      ? spans.map(({ mask, text, image }) => ({ mask, text: image === undefined ? text : nameImage(images?.[image]) }))
      : // Dumps of version 1 have none.
        messages.map(({ content }) => ({ mask: 0 as const, text: showContent(content) }));
  return pieces.flatMap(({ mask, text }) => {
    const origin: Origin = mask === 1 ? "trained" : "given";
    return wrapText(prepareText(text), width - 2).map((part) => paint[origin](`${marks[origin]} ${part}`).trimEnd());
  });
}

function nameImage(image: DumpImage | undefined): string {
  if (!image) return "[image]";
  const { hash, width, height, length } = image;
  return `[image ${width} x ${height}, ${hash.slice(0, 8)}, ${length} tokens]`;
}

/** A message's text for wrapped lines: a tab has no fixed width. */
function prepareText(text: string): string {
  return makePrintable(text).replaceAll("\t", "    ").replace(/\n$/, "");
}

/** A name, and text that keeps to its column. Colours in the text end on their line. */
function drawBlock(label: string, text: string, width: number): string[] {
  return wrapText(text, width - MARGIN).map((part, i) => (i === 0 ? label : " ".repeat(MARGIN)) + part);
}

function formatValue(value: unknown): string {
  const text =
    typeof value === "string" ? value : typeof value === "number" ? formatNumber(value) : JSON.stringify(value);
  return makePrintableLine(text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text);
}

/** At most three decimals; 1 as "1". */
function formatNumber(value: number): string {
  return String(Number(value.toFixed(3)));
}

function formatSigned(value: number): string {
  return `${value > 0 ? "+" : ""}${formatNumber(value)}`;
}
