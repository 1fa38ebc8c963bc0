/** Small charts side by side as SVG: the vertical axis is a success from 0 to 1, the horizontal one begins at 0. */
const columns = 3;
const [width, height, left, top] = [250, 170, 44, 40] as const;

export interface Panel {
  title: string;
  /** SVG of what it shows, in the panel's own coordinates. */
  marks: readonly string[];
}

export interface PanelsOptions {
  /** The label at the right end of each horizontal axis. */
  last: string;
  /** SVG text below all panels. */
  caption: string;
  /** Pixels of the titles' letters. Default 14. */
  titleSize?: number;
}

export interface Place {
  /** From 0 (left) to 1 (right). */
  x: number;
  /** From 0 (bottom) to 1 (top). */
  y: number;
}

/** Pixels in a panel. */
export const placeX = (x: number) => (x * width).toFixed(1);
export const placeY = (y: number) => ((1 - y) * height).toFixed(1);

export function joinPlaces(places: readonly Place[]): string {
  return places.map(({ x, y }) => `${placeX(x)},${placeY(y)}`).join(" ");
}

export function drawLine(places: readonly Place[], color: string, style: string): string {
  return `<polyline points="${joinPlaces(places)}" fill="none" stroke="${color}" ${style}/>`;
}

/** A dashed line at a success. */
export const drawLevel = (y: number) =>
  `<line x1="0" y1="${placeY(y)}" x2="${width}" y2="${placeY(y)}" stroke="#888" stroke-dasharray="4 3"/>`;

export function layOutPanels(panels: readonly Panel[], { last, caption, titleSize = 14 }: PanelsOptions): string {
  const rows = Math.ceil(panels.length / columns);
  const [totalWidth, totalHeight] = [columns * (width + left) + 16, rows * (height + top + 24) + 30];
  const body = panels.map((panel, i) => {
    const x = (i % columns) * (width + left) + left;
    const y = Math.floor(i / columns) * (height + top + 24) + top;
    return `<g transform="translate(${x} ${y})">${drawPanel(panel, last, titleSize)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${totalWidth} ${totalHeight}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${body.join("\n")}
<text x="${left}" y="${totalHeight - 12}" xml:space="preserve">${caption}</text>
</svg>
`;
}

function drawPanel({ title, marks }: Panel, last: string, titleSize: number): string {
  const grid = [0, 0.5, 1].map(
    (v) =>
      `<line x1="0" y1="${placeY(v)}" x2="${width}" y2="${placeY(v)}" stroke="#ddd"/><text x="-6" y="${+placeY(v) + 4}" text-anchor="end">${v}</text>`,
  );
  return [
    `<text x="${width / 2}" y="-12" text-anchor="middle" font-size="${titleSize}">${title}</text>`,
    ...grid,
    ...marks,
    `<text x="0" y="${height + 14}">0</text><text x="${width}" y="${height + 14}" text-anchor="end">${last}</text>`,
  ].join("\n");
}
