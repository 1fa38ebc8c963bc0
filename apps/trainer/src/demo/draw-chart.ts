/** A line of block characters, one for each value; 0 is the lowest block, 1 the highest. */
export function drawSparkline(values: readonly number[]): string {
  const blocks = "▁▂▃▄▅▆▇█";
  return values.map((v) => blocks[Math.max(0, Math.min(blocks.length - 1, Math.floor(v * blocks.length)))]).join("");
}

/** A horizontal bar of a share. */
export function drawBar(share: number, width = 30): string {
  const filled = Math.round(Math.max(0, Math.min(1, share)) * width);
  return "█".repeat(filled) + "·".repeat(width - filled);
}

export interface ChartSeries {
  name: string;
  color: string;
  points: readonly { x: number; y: number }[];
}

/**
 * A small chart of shares (0 to 1) as SVG. A series of one or two values is drawn as points, because a line would
 * suggest a course.
 */
export function drawSvgChart(title: string, series: readonly ChartSeries[]): string {
  const width = 640;
  const height = 320;
  const margin = 48;
  const last = Math.max(1, ...series.flatMap((s) => s.points.map((p) => p.x)));
  const x = (value: number) => margin + (value / last) * (width - 2 * margin);
  const y = (value: number) => height - margin - value * (height - 2 * margin);
  const grid = [0, 0.25, 0.5, 0.75, 1]
    .map(
      (v) =>
        `<line x1="${margin}" y1="${y(v)}" x2="${width - margin}" y2="${y(v)}" stroke="#ddd"/><text x="${margin - 8}" y="${y(v) + 4}" text-anchor="end">${v}</text>`,
    )
    .join("\n");
  const draw = (points: readonly (readonly [number, number])[], color: string) => {
    const places = points.map(([px, py]) => [px.toFixed(1), py.toFixed(1)] as const);
    return places.length > 2
      ? `<polyline points="${places.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`
      : places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="5" fill="${color}"/>`).join("");
  };
  const marks = series
    .map(({ name, color, points }, i) => {
      const left = margin + i * 180;
      const drawn = points.map((p) => [x(p.x), y(p.y)] as const);
      // The legend shows a piece of line, or a point.
      const sample = points.length > 2 ? [0, 8, 16] : [8];
      const legend = sample.map((dx) => [left + dx, margin - 12] as const);
      const label = `<text x="${left + 24}" y="${margin - 8}" fill="${color}">${name}</text>`;
      return draw(drawn, color) + draw(legend, color) + label;
    })
    .join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="${width / 2}" y="20" text-anchor="middle" font-size="15">${title}</text>
${grid}
<text x="${width / 2}" y="${height - 12}" text-anchor="middle">training step</text>
<text x="${x(0)}" y="${height - margin + 18}" text-anchor="middle">0</text><text x="${x(last)}" y="${height - margin + 18}" text-anchor="middle">${last}</text>
${marks}
</svg>
`;
}
