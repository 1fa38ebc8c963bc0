import { ConfigError } from "@cria/core";
import { isAddress } from "@cria/hub/internal";
import type { CoordinatedRun } from "@cria/trainer";
import type { JobBus } from "../bus/job-bus.js";
import { computeClass } from "../jobs/compute-class.js";
import { pack } from "../jobs/pack.js";
import type { ModelFile, RunDescription } from "../jobs/run-description.js";
import { hasWeights, readWeights, type WeightsEngine } from "../jobs/weights.js";
import { hashModel } from "../models/hash-model.js";
import { shareModel } from "../models/share-model.js";
import { identifyUserCode } from "../user-code/identify-user-code.js";
import { toPortableConfig } from "../user-code/portable-config.js";
import { version } from "../version.js";

/** A run in the form that its workers see. */
export interface OpenedRun {
  engine: WeightsEngine;
  description: RunDescription;
  /** SHA-256 of the description, which is stored on the bus. */
  sha: string;
  /** Stores data again that the bus dropped, because of its age or for want of room. */
  renew(): Promise<void>;
}

/**
 * Describes a run to the workers of a bus.
 * @throws ConfigError for an engine whose work cannot be shared; ClusterError.
 */
export async function openRun(bus: JobBus, run: CoordinatedRun): Promise<OpenedRun> {
  const { config, configFolder, task, policy, environment, report, signal } = run;
  const { engine } = policy;
  if (!hasWeights(engine) || !engine.computeGradient) {
    throw new ConfigError("cannot share its work", {
      code: "config/no-weights",
      subject: engine.info.path,
      expected: "an engine whose weights can be read and written, such as loadModel gives",
      received: "one without",
    });
  }
  const { format } = environment.multiTurn;
  const { path, mmproj } = config.actor_rollout_ref.model;
  /** Files that the bus has. */
  const shared: string[] = [];
  const share = (file: string) => shareModel(bus, file, { report, signal });
  const describe = async (file: string, given: string | null): Promise<ModelFile> => {
    const address = given !== null && isAddress(given) ? given : null;
    const mayShare = config.cluster.share_model && address === null;
    if (mayShare) shared.push(file);
    return { ...(await hashModel(file, { report, signal })), address, blobs: mayShare ? await share(file) : null };
  };
  const weights = await readWeights(engine);
  // Before everything else: if they are too large for a blob, nothing was sent or computed in vain.
  const weightsSha = await bus.blobs.put(weights);
  const model = await describe(engine.info.path, path);
  const projector = engine.images ? await describe(engine.images.info.path, mmproj) : null;
  const description: RunDescription = {
    cria: version,
    config: toPortableConfig(config, configFolder),
    userCode: await identifyUserCode(config, configFolder, task),
    model,
    projector,
    class: await computeClass(engine, model.sha256, signal),
    weights: weightsSha,
    toolFormat: typeof format === "string" ? format : null,
  };
  const packed = pack(description);
  return {
    engine,
    description,
    sha: await bus.blobs.put(packed),
    renew: async () => {
      await bus.blobs.put(packed);
      await bus.blobs.put(weights);
      for (const file of shared) await share(file);
    },
  };
}
