/** A metric of a run, or several of the same meaning. Texts are Markdown. */
export interface Metric {
  /** `{a,b}` stands for each of the names, `<x>` for a name that the config, the data or user code chooses. */
  name: string;
  /** Left out: a number without a unit, or one whose unit the user's code knows. */
  unit?: string;
  meaning: string;
  /** The setting that it is written with. Left out: always, where the section's other metrics are. */
  when?: string;
}

export interface MetricSection {
  title: string;
  intro?: string;
  metrics: readonly Metric[];
}
