// RSS over time as SVG: a point for each sample, the medians that are compared as lines.

const WIDTH = 720;
const HEIGHT = 300;
const LEFT = 64;
const BOTTOM = 40;
const TOP = 30;

/** @param samples,trend of SoakReport.memory in packages/engine/src/testing/soak/run-soak.ts */
export function drawMemory(samples, trend) {
  const toMib = (bytes) => bytes / 2 ** 20;
  const last = samples.at(-1)?.seconds ?? 1;
  const highest = Math.max(1, ...samples.map(({ rss }) => toMib(rss)));
  const step = [5, 10, 20, 50, 100, 200, 500, 1000].find((size) => highest / size <= 8) ?? 5000;
  const top = Math.ceil(highest / step) * step;
  const x = (seconds) => LEFT + (seconds / last) * (WIDTH - LEFT - 20);
  const y = (mib) => HEIGHT - BOTTOM - (mib / top) * (HEIGHT - BOTTOM - TOP);
  const grid = Array.from({ length: top / step + 1 }, (_, i) => i * step)
    .map(
      (mib) =>
        `<line x1="${LEFT}" y1="${y(mib).toFixed(1)}" x2="${WIDTH - 20}" y2="${y(mib).toFixed(1)}" stroke="#ddd"/>` +
        `<text x="${LEFT - 8}" y="${(y(mib) + 4).toFixed(1)}" text-anchor="end">${mib}</text>`,
    )
    .join("");
  const times = Array.from({ length: 7 }, (_, i) => (i * last) / 6)
    .map(
      (s) =>
        `<text x="${x(s).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${(s / 60).toFixed(1)}</text>`,
    )
    .join("");
  const points = samples.map(({ seconds, rss }) => `${x(seconds).toFixed(1)},${y(toMib(rss)).toFixed(1)}`).join(" ");
  const median = (from, to, rss, color) =>
    `<line x1="${x(from).toFixed(1)}" x2="${x(to).toFixed(1)}" y1="${y(toMib(rss)).toFixed(1)}" y2="${y(toMib(rss)).toFixed(1)}" stroke="${color}" stroke-width="2"/>`;
  const lines = trend
    ? median(trend.warmUpSeconds, trend.warmUpSeconds + last / 4, trend.first, "#d33") +
      median(last * 0.75, last, trend.last, "#d33")
    : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
<text x="${LEFT}" y="18">RSS, MiB, over minutes; red: the medians that are compared</text>
${grid}${times}
<polyline points="${points}" fill="none" stroke="#26a" stroke-width="1"/>
${lines}
</svg>
`;
}
