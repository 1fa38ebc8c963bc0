import type { Point, TrainingCurves } from "./train-once.js";

export interface Panel {
  title: string;
  /** One for each seed. */
  lines: readonly TrainingCurves[];
}

const columns = 3;
const [width, height, left, top] = [250, 170, 44, 40] as const;
const colors = ["#2563eb", "#16a34a", "#d97706"];

/**
 * Small charts side by side as SVG: held-out success as lines with dots, training success (mean of 5 steps) faint
 * behind.
 */
export function drawPanels(panels: readonly Panel[], target: number): string {
  const rows = Math.ceil(panels.length / columns);
  const [totalWidth, totalHeight] = [columns * (width + left) + 16, rows * (height + top + 24) + 30];
  const last = Math.max(1, ...panels.flatMap((p) => p.lines.flatMap((l) => l.heldOut.map((point) => point.step))));
  const body = panels.map((panel, i) => {
    const x = (i % columns) * (width + left) + left;
    const y = Math.floor(i / columns) * (height + top + 24) + top;
    return `<g transform="translate(${x} ${y})">${drawPanel(panel, target, last)}</g>`;
  });
  const legend = colors.map((color, i) => `<tspan fill="${color}">seed ${i + 1}</tspan>`).join("  ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${totalWidth} ${totalHeight}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${body.join("\n")}
<text x="${left}" y="${totalHeight - 12}" xml:space="preserve">success by training step; dots: 256 held-out problems, faint: the step's own rollouts; dashed: ${target}   ${legend}</text>
</svg>
`;
}

function drawPanel({ title, lines }: Panel, target: number, last: number): string {
  const x = (step: number) => ((step / last) * width).toFixed(1);
  const y = (success: number) => ((1 - success) * height).toFixed(1);
  const draw = (points: readonly Point[], color: string, style: string) =>
    `<polyline points="${points.map((p) => `${x(p.step)},${y(p.success)}`).join(" ")}" fill="none" stroke="${color}" ${style}/>`;
  const grid = [0, 0.5, 1].map(
    (v) =>
      `<line x1="0" y1="${y(v)}" x2="${width}" y2="${y(v)}" stroke="#ddd"/><text x="-6" y="${+y(v) + 4}" text-anchor="end">${v}</text>`,
  );
  const curves = lines.map(({ heldOut, training }, i) => {
    const color = colors[i % colors.length]!;
    const dots = heldOut
      .map((p) => `<circle cx="${x(p.step)}" cy="${y(p.success)}" r="2.5" fill="${color}"/>`)
      .join("");
    return `${draw(smooth(training), color, 'stroke-opacity="0.3"')}${draw(heldOut, color, 'stroke-width="1.6"')}${dots}`;
  });
  return [
    `<text x="${width / 2}" y="-12" text-anchor="middle" font-size="14">${title}</text>`,
    ...grid,
    `<line x1="0" y1="${y(target)}" x2="${width}" y2="${y(target)}" stroke="#888" stroke-dasharray="4 3"/>`,
    ...curves,
    `<text x="0" y="${height + 14}">0</text><text x="${width}" y="${height + 14}" text-anchor="end">${last}</text>`,
  ].join("\n");
}

function smooth(points: readonly Point[], window = 5): Point[] {
  return points.map(({ step }, i) => {
    const near = points.slice(Math.max(0, i - window + 1), i + 1);
    return { step, success: near.reduce((sum, p) => sum + p.success, 0) / near.length };
  });
}
