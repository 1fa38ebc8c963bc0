import { ClusterError, CriaError } from "@cria/core";
import { readHubSettings } from "@cria/hub/internal";
import { fetchModel, fetchProjector } from "@cria/trainer/internal";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import type { ModelFile } from "../jobs/run-description.js";
import { hashModel } from "./hash-model.js";
import { listModels } from "./list-models.js";
import type { WorkOptions } from "./long-work.js";
import { receiveModel } from "./receive-model.js";

export interface FindModelOptions extends WorkOptions {
  /** Default: the model. */
  kind?: "model" | "projector";
  bus: Pick<JobBus, "blobs">;
  /**
   * Folder in which models are searched, and in which one from the bus is stored. Default: the hub's cache and the
   * working directory; the user's cache.
   */
  modelDir?: string;
}

/**
 * A file with exactly the model, or the projector, of a run: from the folder, from the hub, or from the bus, in this
 * order. Files from the hub or the bus are checked by their SHA-256.
 * @throws ClusterError "cluster/no-model" with the places that were searched; the signal's reason.
 */
export async function findModel(wanted: ModelFile, options: FindModelOptions): Promise<string> {
  const { kind = "model", modelDir, bus, report, signal } = options;
  const failures: string[] = [];
  const attempt = async (where: string, find: () => Promise<string | null>): Promise<string | null> => {
    try {
      const found = await find();
      if (found === null) failures.push(`not ${where}`);
      return found;
    } catch (error) {
      signal?.throwIfAborted();
      const { code } = error as NodeJS.ErrnoException;
      const text = error instanceof CriaError ? error.message : `${code ?? ""} ${(error as Error).message}`;
      const why = error instanceof CriaError && error.received !== undefined ? ` (${error.received})` : "";
      failures.push(`not ${where}: ${cleanText(text.split("\n", 1)[0]! + why)}`);
      return null;
    }
  };
  const folders = modelDir === undefined ? [readHubSettings().cacheFolder, process.cwd()] : [modelDir];
  const { address, blobs } = wanted;
  const path =
    (await attempt(`in ${folders.join(", ")}`, () => findInFolders(folders, wanted, options))) ??
    (address === null
      ? null
      : await attempt(`at ${cleanText(address)}`, () => fetchChecked(address, wanted, options))) ??
    (blobs === null
      ? null
      : await attempt("on the bus", () =>
          receiveModel({ ...wanted, blobs }, { kind, bus, folder: modelDir, report, signal }),
        ));
  if (path !== null) return path;
  throw new ClusterError("was not found", {
    code: "cluster/no-model",
    subject: `the ${kind} ${cleanText(wanted.name)}`,
    expected: `a file of ${wanted.bytes} bytes with SHA-256 ${wanted.sha256}`,
    received: failures.join("; "),
    remedy: `put the file into ${modelDir ?? "a folder, and start the worker with --model-dir FOLDER"}`,
  });
}

/** Reads only files of the right size. */
async function findInFolders(
  folders: readonly string[],
  { bytes, sha256 }: ModelFile,
  options: FindModelOptions,
): Promise<string | null> {
  for await (const path of listModels(folders, bytes)) {
    options.signal?.throwIfAborted();
    // An unreadable file may lie next to a readable one.
    const found = await hashModel(path, options).catch(() => undefined);
    if (found?.sha256 === sha256) return path;
  }
  options.signal?.throwIfAborted();
  return null;
}

async function fetchChecked(address: string, wanted: ModelFile, options: FindModelOptions): Promise<string> {
  const path = await (options.kind === "projector" ? fetchProjector : fetchModel)(address, options);
  const { sha256 } = await hashModel(path, options);
  if (sha256 === wanted.sha256) return path;
  throw new ClusterError("is another file now", {
    code: "cluster/other-model",
    subject: cleanText(address),
    expected: `SHA-256 ${wanted.sha256}`,
    received: sha256,
    remedy: "name a revision (@...) in the training's config",
  });
}
