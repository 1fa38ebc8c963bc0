import type { Point } from "./scenarios.js";

export interface Line {
  name: string;
  points: readonly Pick<Point, "workers" | "efficiency">[];
}

export interface Panel {
  title: string;
  lines: readonly Line[];
}

const columns = 3;
const [width, height, left, top] = [230, 130, 46, 44] as const;
const colors = ["#6b7280", "#d97706", "#16a34a", "#2563eb"];

/** Small charts side by side as SVG: the share of the workers' time that is used, by the logarithm of their number. */
export function drawEfficiency(panels: readonly Panel[], legend: readonly string[]): string {
  const rows = Math.ceil(panels.length / columns);
  const [totalWidth, totalHeight] = [columns * (width + left) + 20, rows * (height + top + 22) + 32];
  const body = panels.map((panel, i) => {
    const x = (i % columns) * (width + left) + left;
    const y = Math.floor(i / columns) * (height + top + 22) + top;
    return `<g transform="translate(${x} ${y})">${drawPanel(panel)}</g>`;
  });
  const names = legend.map((name, i) => `<tspan fill="${colors[i % colors.length]}">${name}</tspan>`).join("   ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${totalWidth} ${totalHeight}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${body.join("\n")}
<text x="${left}" y="${totalHeight - 12}" xml:space="preserve">share of the workers' time that is used, by their number: ${names}</text>
</svg>
`;
}

function drawPanel({ title, lines }: Panel): string {
  const last = Math.log2(Math.max(2, ...lines.flatMap(({ points }) => points.map(({ workers }) => workers))));
  const x = (workers: number) => ((Math.log2(workers) / last) * width).toFixed(1);
  const y = (share: number) => ((1 - Math.min(1, share)) * height).toFixed(1);
  const grid = [0, 0.5, 1].map(
    (share) =>
      `<line x1="0" y1="${y(share)}" x2="${width}" y2="${y(share)}" stroke="#ddd"/><text x="-6" y="${Number(y(share)) + 4}" text-anchor="end">${share}</text>`,
  );
  const marks = [1, 4, 16, 64, 256, 1000].map(
    (workers) => `<text x="${x(workers)}" y="${height + 14}" text-anchor="middle">${workers}</text>`,
  );
  const curves = lines.map(({ points }, i) => {
    const places = points.map(({ workers, efficiency }) => `${x(workers)},${y(efficiency)}`).join(" ");
    return `<polyline points="${places}" fill="none" stroke="${colors[i % colors.length]}" stroke-width="1.8"/>`;
  });
  const head = `<text x="${width / 2}" y="-12" text-anchor="middle" font-size="13">${title}</text>`;
  return [head, ...grid, ...marks, ...curves].join("\n");
}
