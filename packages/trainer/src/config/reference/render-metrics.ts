import type { Metric, MetricSection } from "../../metrics/metric.js";
import { metricTable } from "../../metrics/metric-table.js";
import { formatTable } from "./render-markdown.js";

/** Renders docs/metrics.md: every metric of a run, with a table per section. */
export function renderMetrics(): string {
  return `# Metrics

<!-- Written by the build of \`cria\` from the table of metrics (packages/trainer/src/metrics): edit that. -->

A run writes these names into \`metrics.jsonl\`, a line for each step, and into trackers. \`step.metrics\` of \`train()\` has them too. They are
the field's names, if the field has one. \`{a,b}\` stands for each of the names, \`<x>\` for a name that the config, the data or your code
chooses. A metric of something that did not happen is missing: without a critic there is no \`critic/vf_loss\`. Counters are written even
when 0. Shares and probabilities are numbers from 0 to 1. Tests compare this page with the runs that write them.

${metricTable.map(renderSection).join("\n\n")}

## Live state

While it runs, a training with \`file\` in \`trainer.logger\` writes \`live.json\` into its run folder about once a second, and takes it away at
the end: step and phase, conversations that are done, generate or wait for tools, sampled tokens a second, seconds by what was done (the parts of
\`timing_s/wall\`, and validation), how many updates ago the step is sampled, and the seconds until the last step (\`eta\`). \`readLiveState(folder)\` reads it; \`cria watch\` and \`cria view\` show it.
`;
}

function renderSection({ title, intro, metrics }: MetricSection): string {
  const table = formatTable(["metric", "unit", "meaning", "only with"], metrics.map(toCells));
  return [`## ${title}`, ...(intro ? [intro] : []), table].join("\n\n");
}

const toCells = ({ name, unit = "", meaning, when = "" }: Metric): string[] => [`\`${name}\``, unit, meaning, when];
