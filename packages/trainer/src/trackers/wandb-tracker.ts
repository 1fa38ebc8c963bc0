import { createHash, randomBytes } from "node:crypto";
import { ConfigError } from "@cria/core";
import { formatGroundTruth, GenerationsError } from "./generation.js";
import { encodeBasicAuth, requestJson } from "./request-json.js";
import type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./tracker.js";

interface SavedRun {
  id: string;
  entity: string;
  project: string;
}

const UPSERT = `mutation UpsertBucket($id: String!, $project: String!, $entity: String, $name: String, $config: JSONString) {
  upsertBucket(input: { name: $id, modelName: $project, entityName: $entity, displayName: $name, config: $config }) {
    bucket { name project { name entity { name } } }
    inserted
  }
}`;

const CREATE_FILES = `mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: { entityName: $entity, projectName: $project, runName: $run, files: $files }) {
    runID uploadHeaders files { name uploadUrl }
  }
}`;

const RESUME_STATUS = `query RunResumeStatus($project: String, $entity: String, $id: String!) {
  model(name: $project, entityName: $entity) { bucket(name: $id, missingOk: true) { historyLineCount historyTail } }
}`;

/**
 * Weights & Biases, with the protocol of its own open-source client: a GraphQL mutation creates the run, lines of
 * history go to `file_stream`. Environment: WANDB_API_KEY, WANDB_ENTITY, WANDB_BASE_URL (default
 * https://api.wandb.ai). A history only grows, and its steps rise. Steps that a resumed run computes again are
 * therefore not sent: the values first logged stay, as with W&B's own client.
 */
export class WandbTracker implements Tracker {
  readonly name = "wandb";
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly entity: string | null;
  private run: SavedRun = { id: "", entity: "", project: "" };
  /** Number of history lines sent so far. */
  private lines = 0;
  /** Last step in the history when the run was resumed. */
  private lastStep = Number.NEGATIVE_INFINITY;
  private readonly summary: Record<string, number> = {};
  private started = 0;

  /** @throws ConfigError when there is no key. */
  constructor(env: NodeJS.ProcessEnv) {
    const { WANDB_API_KEY: key, WANDB_BASE_URL: url, WANDB_ENTITY: entity } = env;
    if (!key) {
      throw new ConfigError("is not set", {
        code: "config/tracker",
        subject: "environment variable WANDB_API_KEY",
        expected: "a key, as trainer.logger names wandb",
        remedy: "set it, or take wandb out of trainer.logger",
      });
    }
    this.url = (url || "https://api.wandb.ai").replace(/\/+$/, "");
    this.headers = { authorization: encodeBasicAuth("api", key) };
    this.entity = entity || null;
  }

  async start(run: TrackedRun, signal: AbortSignal): Promise<unknown> {
    this.started = Date.now();
    const saved = run.resumedStep === null ? null : (run.saved as SavedRun | null);
    const config = Object.fromEntries(Object.entries(run.config).map(([key, value]) => [key, { value }]));
    const { upsertBucket } = await this.query<{
      upsertBucket: { bucket: { name: string; project: { name: string; entity: { name: string } } } };
    }>(
      UPSERT,
      {
        id: saved?.id ?? randomBytes(6).toString("hex").slice(0, 8),
        project: saved?.project ?? run.project,
        entity: saved?.entity ?? this.entity,
        name: run.experiment,
        config: JSON.stringify(config),
      },
      signal,
    );
    const { name: id, project } = upsertBucket.bucket;
    this.run = { id, project: project.name, entity: project.entity.name };
    if (saved) await this.findEnd(signal);
    return this.run;
  }

  async log(steps: readonly TrackedStep[], signal: AbortSignal): Promise<void> {
    const fresh = steps.filter(({ step }) => step > this.lastStep);
    if (fresh.length === 0) return;
    const tables = await Promise.allSettled(fresh.map((step) => step.generations && this.uploadTable(step, signal)));
    const lines = fresh.map(({ step, time, metrics }, i) => {
      const upload = tables[i]!;
      const table = upload.status === "fulfilled" && upload.value ? { "val/generations": upload.value } : {};
      const times = { _timestamp: time / 1000, _runtime: (time - this.started) / 1000 };
      return JSON.stringify({ ...metrics, ...table, _step: step, ...times });
    });
    for (const { step, metrics } of fresh) Object.assign(this.summary, metrics, { _step: step });
    await this.stream(
      {
        files: {
          "wandb-history.jsonl": { offset: this.lines, content: lines },
          "wandb-summary.json": { offset: 0, content: [JSON.stringify(this.summary)] },
        },
        dropped: 0,
      },
      signal,
    );
    this.lines += lines.length;
    const failed = tables.find((upload) => upload.status === "rejected");
    if (failed) throw new GenerationsError(failed.reason);
  }

  /** Uploads a table in W&B's form: a JSON file among the run's media. Returns its entry for the history. */
  private async uploadTable({ step, generations = [] }: TrackedStep, signal: AbortSignal): Promise<unknown> {
    const columns = ["step", "input", "output", "ground_truth", "score"];
    const data = generations.map((g) => [step, g.input, g.output, formatGroundTruth(g), g.score]);
    const content = JSON.stringify({ columns, data });
    const sha256 = createHash("sha256").update(content).digest("hex");
    const path = `media/table/val/generations_${step}_${sha256.slice(0, 20)}.table.json`;
    const { entity, project, id } = this.run;
    const { createRunFiles } = await this.query<{
      createRunFiles: { uploadHeaders: string[]; files: { uploadUrl: string }[] };
    }>(CREATE_FILES, { entity, project, run: id, files: [path] }, signal);
    const headers = createRunFiles.uploadHeaders.map((line) => line.split(/:(.*)/s).slice(0, 2) as [string, string]);
    const response = await fetch(new URL(createRunFiles.files[0]!.uploadUrl, this.url), {
      method: "PUT",
      headers,
      body: content,
      signal,
    });
    if (!response.ok) throw new Error(`the upload of ${path} was answered with ${response.status}`);
    await this.stream({ uploaded: [path], dropped: 0 }, signal);
    const size = Buffer.byteLength(content);
    return { _type: "table-file", path, sha256, size, ncols: columns.length, nrows: data.length };
  }

  finish(status: RunStatus, signal: AbortSignal): Promise<void> {
    return this.stream(
      { complete: true, exitcode: { finished: 0, failed: 1, interrupted: 255 }[status], dropped: 0 },
      signal,
    );
  }

  /** Finds the history's length and its last step. */
  private async findEnd(signal: AbortSignal): Promise<void> {
    const { id, project, entity } = this.run;
    const { model } = await this.query<{
      model: { bucket: { historyLineCount: number; historyTail: string | null } | null } | null;
    }>(RESUME_STATUS, { id, project, entity }, signal);
    this.lines = model?.bucket?.historyLineCount ?? 0;
    // The last lines, each as the JSON text that was sent, in a JSON list.
    const tail = JSON.parse(model?.bucket?.historyTail || "[]") as string[];
    const last = tail.at(-1);
    if (last) this.lastStep = (JSON.parse(last) as { _step?: number })._step ?? this.lastStep;
  }

  private async query<T>(query: string, variables: Record<string, unknown>, signal: AbortSignal): Promise<T> {
    const answer = await requestJson<{ data?: T; errors?: { message: string }[] }>(`${this.url}/graphql`, {
      headers: this.headers,
      body: { query, variables },
      signal,
    });
    if (answer.errors?.length || !answer.data)
      throw new Error(`the server refused: ${answer.errors?.map((e) => e.message).join("; ") ?? "no data"}`);
    return answer.data;
  }

  private async stream(body: unknown, signal: AbortSignal): Promise<void> {
    const { entity, project, id } = this.run;
    const path = [entity, project, id].map(encodeURIComponent).join("/");
    await requestJson(`${this.url}/files/${path}/file_stream`, { headers: this.headers, body, signal });
  }
}
