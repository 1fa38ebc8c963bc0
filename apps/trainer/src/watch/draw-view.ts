import { findLastAnswer } from "@cria/core";
import { drawConversation } from "../show/draw-conversation.js";
import { colors as pc } from "../terminal/colors.js";
import { describeProblem } from "../terminal/describe-problem.js";
import { drawPlot } from "../terminal/draw-plot.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { formatCount, formatSeconds } from "../terminal/progress.js";
import { wrapText } from "../terminal/wrap-text.js";
import { drawWorkers } from "./draw-workers.js";
import type { RunView } from "./read-view.js";

export const panes = ["overview", "groups", "conversation", "tools", "findings"] as const;
export type Pane = (typeof panes)[number];

export interface DrawViewOptions {
  width: number;
  height: number;
  pane: Pane;
  /** Lines of the pane that are above the screen. */
  scroll: number;
}

const FINE = pc.green("the coach finds nothing wrong");
const DOTS = "⠀⣀⣤⣶⣿";

/** A run on a full screen: exactly `height` lines, none wider than `width`. */
export function drawView(view: RunView, { width, height, pane, scroll }: DrawViewOptions): string[] {
  const head = drawHead(view, width);
  const room = Math.max(0, height - head.length - 1);
  const body = bodies[pane](view, width, room);
  const top = Math.max(0, Math.min(scroll, body.length - room));
  const shown = body.slice(top, top + room);
  const names = panes.map((name, i) => (name === pane ? pc.bold(`[${i + 1} ${name}]`) : ` ${i + 1} ${name} `)).join("");
  const more = body.length > room ? ` ↑↓ ${top + shown.length}/${body.length}` : "";
  const lines = [...head, ...shown, ...Array<string>(room - shown.length).fill(""), `${names} q quit${more}`];
  return lines.slice(0, height).map((line) => wrapText(line, width)[0] ?? "");
}

function drawHead({ summary, live }: RunView, width: number): string[] {
  const { path, status, step, total, model, before, after, trouble } = summary;
  const share = total ? Math.min(1, step / total) : 0;
  const filled = Math.round(share * 20);
  const bar = pc.cyan("█".repeat(filled)) + pc.dim("░".repeat(20 - filled));
  const facts = live
    ? [
        live.phase,
        `ETA ${live.eta === null ? "?" : formatSeconds(live.eta)}`,
        `${formatCount(live.tokensPerSecond)} tok/s`,
        `${live.conversations.done}/${live.conversations.total} conversations`,
        ...(live.conversations.waitingForTools > 0 ? [`${live.conversations.waitingForTools} wait for tools`] : []),
      ]
    : [status, ...(trouble === null ? [] : [pc.red(makePrintableLine(trouble))])];
  const success = `success ${before?.toFixed(3) ?? "?"} → ${after?.toFixed(3) ?? "?"}`;
  return [
    `${pc.bold(makePrintableLine(path))}  ${pc.dim(makePrintableLine(model ?? ""))}`,
    `${bar} ${step}${total === null ? "" : `/${total}`}  ${facts.join(" · ")}`,
    `${success}  ${pc.dim("─".repeat(Math.max(0, width - success.length - 2)))}`,
  ];
}

type DrawPane = (view: RunView, width: number, room: number) => string[];

const bodies: Record<Pane, DrawPane> = {
  overview(view, width, room) {
    const half = Math.floor((width - 2) / 2);
    const height = Math.max(2, Math.min(8, room - 10));
    const left = drawCurve(view, ["reward/score/mean", "critic/score/mean"], "success in training", half, height);
    const right = drawCurve(view, ["actor/pg_loss", "train/loss"], "loss", half, height);
    const curves = left.map((line, i) => `${line}  ${right[i]}`);
    const [first] = view.findings;
    const finding = first ? describeProblem(first, null, width).split("\n").slice(0, 3) : [FINE];
    const workers = view.live?.cluster ? drawWorkers(view.live.cluster) : [];
    const end = [...drawSampleLine(view), ...drawToolLine(view), ...workers, ...finding];
    const strips = drawStrips(view, width);
    return [...curves, ...strips.slice(0, Math.max(1, room - curves.length - end.length)), ...end];
  },
  groups: (view, width) => drawStrips(view, width),
  conversation({ newest }, width) {
    if (!newest?.sample) return ["no conversation is written yet"];
    const group = newest.groups.find(({ uid }) => uid === newest.sample!.uid)?.rewards ?? [];
    return drawConversation(
      {
        line: newest.sample,
        file: "",
        group: group.map((reward, sample) => ({ sample, reward })),
        schemas: newest.sample.tool_schemas,
      },
      { width },
    );
  },
  tools(view) {
    const last = view.rows.findLast((row) => row.has("agent_loop/tool_error_rate"));
    if (!last) return ["no tool was called yet"];
    const rows = [...last].filter(([name]) => /^(agent_loop\/tool_|tool\/|timing_s\/tool\/)/.test(name));
    return [
      ...drawToolLine(view),
      ...(view.newest?.failures ?? []).map(([kind, count]) => `  ${count} × ${makePrintableLine(kind)}`),
      "",
      ...rows
        .filter(([, value]) => value !== 0)
        .map(
          ([name, value]) => `${String(Number((value ?? 0).toPrecision(3))).padStart(10)}  ${makePrintableLine(name)}`,
        ),
    ];
  },
  findings({ findings, summary }, width) {
    if (findings.length === 0) return [FINE];
    return findings.flatMap((finding) => [...describeProblem(finding, summary.path, width).split("\n"), ""]);
  },
};

/** A plot with its title and its range. */
function drawCurve(
  { rows }: RunView,
  names: readonly string[],
  title: string,
  width: number,
  height: number,
): string[] {
  const name = names.find((name) => rows.some((row) => row.has(name)));
  const values = name === undefined ? [] : rows.flatMap((row) => row.get(name) ?? []);
  const last = values.at(-1);
  const label = last === undefined ? `${title}: nothing yet` : `${title} ${Number(last.toPrecision(3))}`;
  const isShare = title.startsWith("success") && values.every((value) => value >= 0 && value <= 1);
  const plot = drawPlot(values, { width, height, ...(isShare ? { range: [0, 1] as const } : {}) });
  return [pc.bold(label.padEnd(width).slice(0, width)), ...plot.map((line) => pc.cyan(line))];
}

/** A line for each prompt of the newest step: a mark for each reward, from the lowest of the step to the highest. */
function drawStrips({ newest }: RunView, width: number): string[] {
  if (!newest) return ["no conversation is written yet"];
  const all = newest.groups.flatMap(({ rewards }) => rewards.flatMap((reward) => reward ?? []));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const mark = (reward: number | null) => {
    if (reward === null) return pc.red("✗");
    const share = high > low ? (reward - low) / (high - low) : 1;
    return DOTS[Math.round(share * (DOTS.length - 1))]!.replace("⠀", "·");
  };
  const show = (value: number) => Number(value.toPrecision(3));
  const range = low < high ? `· is ${show(low)}, ⣿ is ${show(high)}` : `all are ${show(low)}`;
  const title = `rewards of step ${newest.step ?? "?"}: ${all.length > 0 ? range : "none"}`;
  const groups = newest.groups.map(({ uid, rewards }) => {
    const mean = average(rewards.flatMap((reward) => reward ?? []));
    const name = makePrintableLine(uid).slice(-16).padEnd(16);
    const room = Math.max(1, width - 26);
    return `${pc.dim(name)} ${mean === null ? " none" : mean.toFixed(2).padStart(5)} ${rewards.slice(0, room).map(mark).join("")}`;
  });
  return [pc.bold(title), ...groups];
}

/** The last words and the reward of the sample conversation. */
function drawSampleLine({ newest }: RunView): string[] {
  if (!newest?.sample) return [];
  const { messages, prompt_messages, reward } = newest.sample;
  const said = findLastAnswer(messages.slice(prompt_messages));
  return [
    `${pc.bold("worst")} (reward ${Number((reward ?? 0).toPrecision(3))}): ${makePrintableLine(said.slice(0, 400))}`,
  ];
}

function drawToolLine({ rows, newest }: RunView): string[] {
  const last = rows.findLast((row) => (row.get("tool_call_counts/mean") ?? 0) > 0);
  if (!last) return [];
  const rate = last.get("agent_loop/tool_error_rate") ?? 0;
  const calls = last.get("tool_call_counts/mean") ?? 0;
  const worst = newest?.failures[0];
  const text = `tools: ${calls.toFixed(2)} calls a conversation, ${(100 * rate).toFixed(1)} % fail${worst ? `, mostly ${worst[0]}` : ""}`;
  return [(rate > 0.2 ? pc.red : pc.dim)(makePrintableLine(text))];
}

function average(values: readonly number[]): number | null {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
}
