import { drawLevel, drawLine, layOutPanels, placeX, placeY } from "../pages/panels.js";
import type { Point, TrainingCurves } from "./train-once.js";

export interface Panel {
  title: string;
  /** One for each seed. */
  lines: readonly TrainingCurves[];
}

const colors = ["#2563eb", "#16a34a", "#d97706"];

/**
 * Small charts side by side as SVG: held-out success as lines with dots, training success (mean of 5 steps) faint
 * behind.
 */
export function drawPanels(panels: readonly Panel[], target: number): string {
  const last = Math.max(1, ...panels.flatMap((p) => p.lines.flatMap((l) => l.heldOut.map((point) => point.step))));
  const legend = colors.map((color, i) => `<tspan fill="${color}">seed ${i + 1}</tspan>`).join("  ");
  return layOutPanels(
    panels.map(({ title, lines }) => ({ title, marks: drawMarks(lines, target, last) })),
    {
      last: String(last),
      caption: `success by training step; dots: 256 held-out problems, faint: the step's own rollouts; dashed: ${target}   ${legend}`,
    },
  );
}

function drawMarks(lines: readonly TrainingCurves[], target: number, last: number): string[] {
  const place = ({ step, success }: Point) => ({ x: step / last, y: success });
  const curves = lines.map(({ heldOut, training }, i) => {
    const color = colors[i % colors.length]!;
    const dots = heldOut
      .map((p) => `<circle cx="${placeX(p.step / last)}" cy="${placeY(p.success)}" r="2.5" fill="${color}"/>`)
      .join("");
    const faint = drawLine(smooth(training).map(place), color, 'stroke-opacity="0.3"');
    return `${faint}${drawLine(heldOut.map(place), color, 'stroke-width="1.6"')}${dots}`;
  });
  return [drawLevel(target), ...curves];
}

function smooth(points: readonly Point[], window = 5): Point[] {
  return points.map(({ step }, i) => {
    const near = points.slice(Math.max(0, i - window + 1), i + 1);
    return { step, success: near.reduce((sum, p) => sum + p.success, 0) / near.length };
  });
}
