import { Show } from "solid-js";

const WIDTH = 96;
const HEIGHT = 24;

/** A small curve of values between 0 and 1 (or their own range, when it is wider). */
export function SparkLine(props: { values: readonly number[]; label: string }) {
  const points = () => {
    const low = Math.min(0, ...props.values);
    const high = Math.max(1, ...props.values);
    const step = (WIDTH - 4) / Math.max(1, props.values.length - 1);
    return props.values.map((value, i) => [
      2 + i * step,
      HEIGHT - 2 - ((value - low) / (high - low)) * (HEIGHT - 4),
    ]) as [number, number][];
  };
  const path = () =>
    points()
      .map(([x, y], i) => `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`)
      .join("");
  return (
    <Show when={props.values.length > 0} fallback={<span class="soft">–</span>}>
      <svg
        class="spark"
        width={WIDTH}
        height={HEIGHT}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={props.label}
      >
        <path class="spark-ground" d={`${path()}L${points().at(-1)![0].toFixed(1)} ${HEIGHT}L2 ${HEIGHT}Z`} />
        <path class="spark-line" d={path()} />
        <circle class="spark-end" cx={points().at(-1)![0]} cy={points().at(-1)![1]} r="2" />
      </svg>
    </Show>
  );
}
