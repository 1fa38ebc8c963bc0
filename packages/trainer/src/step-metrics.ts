/** Metrics of one step by their names in the field. */
export type StepMetrics = Record<string, number>;
