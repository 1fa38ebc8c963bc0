import { Events } from "./events.js";
import { Fabric } from "./fabric.js";
import { simulateGradients } from "./gradients.js";
import { simulateRollouts } from "./rollouts.js";
import { JOB_TOKEN_BYTES, RESULT_TOKEN_BYTES, type Setup, WEIGHT_BYTES } from "./setup.js";
import { type Conversation, cutPlan, drawConversations, planMicroBatches } from "./workload.js";

const SCORES_PER_WORKER = 2;

/** Seconds of one synchronous step, each phase after the one before. */
export interface StepTimes {
  /** Until the last worker has the policy. */
  broadcast: number;
  /** From then until the last conversation's end. */
  rollout: number;
  score: number;
  /** Gradients and their sum. */
  gradient: number;
  optimizer: number;
  total: number;
  /** Gradient jobs in the best of the plans that the design allows, and tokens of their micro-batches. */
  parts: number;
  microBatchTokens: number;
}

export function simulateStep(setup: Setup): StepTimes {
  const conversations = drawConversations(setup.workload);
  const { broadcast, rollout } = simulateRolloutPhase(setup, conversations);
  const score = simulateScores(setup, conversations);
  const { seconds: gradient, ...plan } = findBestPlan(setup, conversations);
  const optimizer = setup.costs.stepSeconds;
  return {
    broadcast,
    rollout,
    score,
    gradient,
    optimizer,
    total: broadcast + rollout + score + gradient + optimizer,
    ...plan,
  };
}

function simulateRolloutPhase(setup: Setup, conversations: readonly Conversation[]) {
  const fabric = new Fabric(setup);
  const arrivals = simulateBroadcast(setup, fabric);
  const broadcast = Math.max(...arrivals);
  const end = simulateRollouts(setup, fabric, conversations, arrivals);
  return { broadcast, rollout: Math.max(0, end - broadcast) };
}

/** @returns when each worker has the trained weights and has read them. */
export function simulateBroadcast(setup: Setup, fabric: Fabric): number[] {
  const { costs, workers } = setup;
  const bytes = costs.weights * WEIGHT_BYTES;
  const published = fabric.publish(costs.readSeconds, bytes);
  const copies = Array.from({ length: fabric.leafCount }, (_, leaf) => fabric.copyToLeaf(published, leaf, bytes));
  return Array.from({ length: workers }, (_, worker) => {
    const place = fabric.leafOf(worker);
    const there = place === Fabric.HUB ? published : copies[place]!;
    return fabric.get(there, worker, bytes, place) + costs.writeSeconds;
  });
}

/** Runs of conversations with about as many tokens, two for each worker, in order, to whoever is free. */
function simulateScores(setup: Setup, conversations: readonly Conversation[]): number {
  const { workload, costs, speed, workers } = setup;
  const tokensOfAll = conversations.reduce((sum, one) => sum + one.tokens, 0);
  const jobs = planMicroBatches(conversations, tokensOfAll / (SCORES_PER_WORKER * workers));
  const fabric = new Fabric(setup);
  const events = new Events();
  let next = 0;
  let end = 0;
  const takeNext = (worker: number) => (at: number) => {
    const tokens = jobs[next++];
    if (tokens === undefined) return;
    const ready = Math.max(at, fabric.coordinate(0, costs.jobSeconds));
    const begin = fabric.message(ready, worker, tokens * JOB_TOKEN_BYTES, "in");
    const seconds = (workload.scorePasses * tokens) / (costs.scored * speed);
    events.plan(begin + seconds, (done) => {
      const told = fabric.message(done, worker, tokens * RESULT_TOKEN_BYTES, "out");
      end = Math.max(end, fabric.audit(told, seconds));
      takeNext(worker)(done);
    });
  };
  for (let worker = 0; worker < workers; worker++) events.plan(0, takeNext(worker));
  events.run();
  return end;
}

interface Plan {
  seconds: number;
  parts: number;
  microBatchTokens: number;
}

/** The fastest of the plans that the design allows. */
function findBestPlan(setup: Setup, conversations: readonly Conversation[]): Plan {
  return setup.design.microBatchTokens
    .flatMap((microBatchTokens) => {
      const plan = planMicroBatches(conversations, microBatchTokens);
      return listCuts(setup, plan).map((parts): Plan => {
        const seconds = simulateGradients(setup, new Fabric(setup), parts, 0);
        return { seconds, parts: parts.length, microBatchTokens };
      });
    })
    .reduce((best, one) => (one.seconds < best.seconds ? one : best));
}

/** Flat: the plan itself. Tree: any power of two of subtrees gives the same bits; those near the number of workers are tried. */
function listCuts({ design, workers }: Setup, plan: readonly number[]): number[][] {
  if (design.sum === "flat") return [[...plan]];
  const most = Math.floor(Math.log2(plan.length));
  const near = Math.ceil(Math.log2(workers));
  const depths = [-3, -2, -1, 0, 1, 2].map((more) => Math.min(most, Math.max(0, near + more)));
  return [...new Set(depths)].map((depth) => cutPlan(plan, 2 ** depth));
}
