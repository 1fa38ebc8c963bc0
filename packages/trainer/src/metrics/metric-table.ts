import type { MetricSection } from "./metric.js";
import { actorMetrics } from "./sections/actor.js";
import { agentLoopsMetrics } from "./sections/agent-loops.js";
import { clusterMetrics } from "./sections/cluster.js";
import { criticMetrics } from "./sections/critic.js";
import { imagesMetrics } from "./sections/images.js";
import { rescoreMetrics } from "./sections/rescore.js";
import { rewardsMetrics } from "./sections/rewards.js";
import { rolloutsMetrics } from "./sections/rollouts.js";
import { samplerMetrics } from "./sections/sampler.js";
import { sftMetrics } from "./sections/sft.js";
import { timeMetrics } from "./sections/time.js";
import { toolsMetrics } from "./sections/tools.js";
import { validationMetrics } from "./sections/validation.js";

/** All metrics of runs, in the order of docs/metrics.md, which is written from this table. */
export const metricTable: readonly MetricSection[] = [
  rewardsMetrics,
  rolloutsMetrics,
  agentLoopsMetrics,
  imagesMetrics,
  toolsMetrics,
  actorMetrics,
  criticMetrics,
  samplerMetrics,
  validationMetrics,
  timeMetrics,
  clusterMetrics,
  sftMetrics,
  rescoreMetrics,
];
