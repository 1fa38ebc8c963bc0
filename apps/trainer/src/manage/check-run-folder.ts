import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { DataError } from "@cria/core";
import { findRuns } from "../runs/find-runs.js";

/**
 * The folder under its given name.
 * @throws DataError when it is no run's; it names runs below it.
 */
export async function checkRunFolder(path: string): Promise<string> {
  const found = existsSync(path) ? await findRuns([path]) : [];
  if (found.some((run) => resolve(run.path) === resolve(path))) return path;
  const below = found.slice(0, 5).map((run) => run.path);
  throw new DataError("is not the folder of a run", {
    code: "data/no-run",
    subject: path,
    expected: "a run folder (runs/<project>/<experiment>)",
    received: existsSync(path) ? "another folder" : "nothing there",
    remedy: below.length > 0 ? `name a run: ${below.join(", ")}` : "cria runs lists all runs",
  });
}
