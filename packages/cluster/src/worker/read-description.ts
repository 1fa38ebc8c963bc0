import { ClusterError } from "@cria/core";
import { type TrainConfig, trainConfigSchema } from "@cria/trainer";
import { checkConfig } from "@cria/trainer/internal";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import { unpack } from "../jobs/pack.js";
import { type RunDescription, runDescriptionSchema } from "../jobs/run-description.js";
import { version } from "../version.js";

export interface DescribedRun {
  /** SHA-256 of the description. */
  sha: string;
  description: RunDescription;
  config: TrainConfig;
}

const versionSchema = z.looseObject({ cria: z.string().max(100) });

/**
 * Fetches a run's description, and checks all of it.
 * @throws ClusterError "cluster/other-version" with both versions, "cluster/invalid-message" for an invalid
 * description, those of `blobs.get`; ConfigError for a config that this version does not take.
 */
export async function readDescription({ blobs }: Pick<JobBus, "blobs">, sha: string): Promise<DescribedRun> {
  const subject = `the description of run ${sha.slice(0, 12)}`;
  const refuse = (received: string, cause?: unknown) =>
    new ClusterError("is invalid", { code: "cluster/invalid-message", subject, received, cause });
  const bytes = await blobs.get(sha);
  let value: unknown;
  try {
    value = unpack(bytes);
  } catch (cause) {
    throw refuse(cleanText((cause as Error).message), cause);
  }
  // Checked before the rest, which may differ in other versions.
  const theirs = versionSchema.safeParse(value).data?.cria;
  if (theirs !== undefined && theirs !== version) {
    throw new ClusterError("is of another version of Cria", {
      code: "cluster/other-version",
      subject,
      expected: `Cria ${version}, this worker's version`,
      received: `Cria ${cleanText(theirs)}`,
      remedy: "install the same version of Cria on coordinator and workers",
    });
  }
  const parsed = runDescriptionSchema.safeParse(value);
  if (!parsed.success) throw refuse(cleanText(z.prettifyError(parsed.error)));
  const description = parsed.data;
  return { sha, description, config: checkConfig(trainConfigSchema, description.config, subject) };
}
