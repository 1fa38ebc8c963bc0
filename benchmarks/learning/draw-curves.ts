import { median } from "../measure.js";
import { drawLine, joinPlaces, layOutPanels, type Panel, type Place } from "../pages/panels.js";
import { type Curve, readSuccess } from "./curve.js";

/** Places along the horizontal axis at which the seeds are compared. */
const PLACES = 64;
const [plainColor, ownColor] = ["#888888", "#2563eb"];

export interface Curves {
  name: string;
  /** One for each seed. */
  own: readonly Curve[];
}

/**
 * A panel for each method with held-out success by sampled tokens: the median of its seeds as a line in a band from the
 * lowest to the highest one, and GRPO's behind it.
 * @param budget tokens at the right end.
 */
export function drawCurves(plain: readonly Curve[], methods: readonly Curves[], budget: number): string {
  const behind = drawBand(plain, budget, plainColor);
  const panels = methods.map(
    ({ name, own }): Panel => ({ title: name, marks: [behind, drawBand(own, budget, ownColor)] }),
  );
  const caption = `held-out success by sampled tokens; line: the median of the seeds, band: the lowest to the highest   <tspan fill="${plainColor}">GRPO</tspan>  <tspan fill="${ownColor}">the method</tspan>`;
  return layOutPanels(panels, { last: `${budget / 1000}k`, caption, titleSize: 11 });
}

/** The median, the lowest and the highest success of the seeds at a share of the budget. */
export function readSpread(curves: readonly Curve[], budget: number, share: number) {
  const values = curves.map((curve) => readSuccess(curve, share * budget));
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}

function drawBand(curves: readonly Curve[], budget: number, color: string): string {
  const spreads = Array.from({ length: PLACES + 1 }, (_, i) => {
    const x = i / PLACES;
    return { x, ...readSpread(curves, budget, x) };
  });
  const along = (key: "median" | "lowest" | "highest") => spreads.map(({ x, [key]: y }): Place => ({ x, y }));
  const outline = joinPlaces([...along("highest"), ...along("lowest").reverse()]);
  const band = `<polygon points="${outline}" fill="${color}" fill-opacity="0.2"/>`;
  return band + drawLine(along("median"), color, 'stroke-width="1.6"');
}
