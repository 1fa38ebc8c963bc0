// Schemas of options, for configs: apart from `internal.ts`, so that a program with a task loads no zod.

export { policyLossParameters, policyLossTerms } from "./losses/policy-loss-parameters.js";
export { teacherTermOptions } from "./teacher-term-options.js";
