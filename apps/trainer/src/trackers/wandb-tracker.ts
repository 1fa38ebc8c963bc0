import { randomBytes } from "node:crypto";
import { ConfigError } from "@cria/core";
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

const COUNT_LINES = `query RunResumeStatus($project: String, $entity: String, $id: String!) {
  model(name: $project, entityName: $entity) { bucket(name: $id, missingOk: true) { historyLineCount } }
}`;

/**
 * Weights & Biases as its own open-source client speaks to it: a GraphQL mutation makes the run, lines of history go to
 * `file_stream`. Where and how: WANDB_API_KEY, WANDB_ENTITY, WANDB_BASE_URL (default https://api.wandb.ai).
 */
export class WandbTracker implements Tracker {
  readonly name = "wandb";
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly entity: string | null;
  private run: SavedRun = { id: "", entity: "", project: "" };
  /** Lines of history sent so far. */
  private lines = 0;
  private readonly summary: Record<string, number> = {};
  private started = 0;

  /** @throws ConfigError when there is no key. */
  constructor(environment: NodeJS.ProcessEnv) {
    const { WANDB_API_KEY: key, WANDB_BASE_URL: url, WANDB_ENTITY: entity } = environment;
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
    if (saved) this.lines = await this.countLines(signal);
    return this.run;
  }

  async log(steps: readonly TrackedStep[], signal: AbortSignal): Promise<void> {
    const lines = steps.map(({ step, time, metrics }) =>
      JSON.stringify({ ...metrics, _step: step, _timestamp: time / 1000, _runtime: (time - this.started) / 1000 }),
    );
    for (const { step, metrics } of steps) Object.assign(this.summary, metrics, { _step: step });
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
  }

  finish(status: RunStatus, signal: AbortSignal): Promise<void> {
    return this.stream(
      { complete: true, exitcode: { finished: 0, failed: 1, interrupted: 255 }[status], dropped: 0 },
      signal,
    );
  }

  private async countLines(signal: AbortSignal): Promise<number> {
    const { id, project, entity } = this.run;
    const { model } = await this.query<{ model: { bucket: { historyLineCount: number } | null } | null }>(
      COUNT_LINES,
      { id, project, entity },
      signal,
    );
    return model?.bucket?.historyLineCount ?? 0;
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
