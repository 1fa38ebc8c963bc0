import type { MetricSection } from "../metric.js";

export const clusterMetrics: MetricSection = {
  title: "Work on many machines",
  intro:
    "Steps have these where the work is shared over a bus (`cria train --bus`). They count what happened in the step.",
  metrics: [
    {
      name: "cluster/workers",
      unit: "workers",
      meaning: "workers that are there at the end of the step, those that are shut out left aside",
    },
    {
      name: "cluster/{jobs_here,jobs_elsewhere}",
      unit: "jobs",
      meaning: "jobs (conversations, logprobs, gradients) that the coordinator did itself, and that workers did",
    },
    {
      name: "cluster/copies",
      unit: "jobs",
      meaning:
        "jobs that were given to another as well, or done here as well, because they took far longer than the others",
    },
    {
      name: "cluster/redelivered",
      unit: "jobs",
      meaning: "jobs that were begun again, because a worker failed or fell silent",
    },
    {
      name: "cluster/abandoned",
      unit: "jobs",
      meaning:
        "jobs that lost `cluster.max_tries` workers or took longer than `cluster.job_timeout_s`, which the coordinator then did",
    },
    {
      name: "cluster/{audits,audits_failed,audits_open}",
      unit: "results",
      meaning:
        "results of workers that the coordinator computed again; those of them that differed; those that could not be decided, because tools answered otherwise or the conversation failed with the worker alone",
    },
    {
      name: "cluster/{logprob_diff_mean,logprob_diff_max}",
      unit: "nats",
      meaning:
        "how far the logprobs of the workers' conversations are from those that the step computed: the largest mean of a conversation, the largest of a token. 0 with `bypass_mode`, larger with a lag",
    },
    {
      name: "cluster/other_class",
      unit: "conversations",
      meaning: "conversations that workers of another class held, whose bits may differ",
    },
    {
      name: "cluster/{policy_bytes,gradient_bytes,job_bytes}",
      unit: "bytes",
      meaning: "weights that were sent; gradients; all other jobs and their results",
    },
    {
      name: "cluster/image_bytes",
      unit: "bytes",
      meaning: "images that the coordinator put into the bus or got from it, each once",
    },
    { name: "cluster/policy_seconds", unit: "s", meaning: "time that it took to send the last of them" },
  ],
};
