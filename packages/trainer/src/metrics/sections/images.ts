import type { MetricSection } from "../metric.js";

export const imagesMetrics: MetricSection = {
  title: "Images",
  intro:
    "Of policies with a projector (`model.mmproj`): what the policy's engine did in the step. On other machines images are encoded too, and are not counted here.",
  metrics: [
    {
      name: "images/shown/{mean,max}",
      unit: "images",
      meaning: "images of a conversation, the prompt's and those of tools and users, failed ones included",
    },
    {
      name: "images/encoded",
      unit: "images",
      meaning: "images that were decoded and encoded; an image that several conversations show is encoded once",
    },
    {
      name: "images/encoded_again",
      unit: "images",
      meaning: "those of them whose vectors had been dropped for want of memory",
    },
    { name: "images/reused", unit: "times", meaning: "times that an image was evaluated whose vectors were there" },
    { name: "images/encode_s", unit: "s", meaning: "what encoding took, beside everything else" },
    { name: "images/held", unit: "images", meaning: "images whose vectors are in memory after the step" },
    { name: "images/held_mb", unit: "MiB", meaning: "their vectors and files" },
  ],
};
