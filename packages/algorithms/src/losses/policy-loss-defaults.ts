// Apart from the schemas, so that the losses load no zod.

/** Defaults of `policyLossParameters`. */
export const parameterDefaults = {
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  clipRatioC: 3,
  clipCovRatio: 2e-4,
  clipCovLb: 1,
  clipCovUb: 5,
  klCovRatio: 2e-4,
  ppoKlCoef: 1,
  droBeta: null,
  tauPos: 1,
  tauNeg: 1,
};

/** Defaults of `policyLossTerms`. */
export const termDefaults = { lossScaleFactor: null, entropyCoeff: 0, observationCoeff: 0, demonstrationCoeff: 0 };

/** Defaults of `teacherTermOptions`. */
export const teacherTermDefaults = {
  estimate: "k3",
  topk: 32,
  coefficient: 1,
  taskRewards: true,
  policyGradient: false,
  lossMode: "vanilla",
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  maxLoss: null,
  minLogprob: null,
};
