import { ConfigError } from "@cria/core";
import { flattenConfig } from "./flatten-config.js";
import { GenerationsError } from "./generation.js";
import { encodeBasicAuth, HttpError, requestJson } from "./request-json.js";
import type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./tracker.js";

/** Limits of one log-batch request. */
const MOST_METRICS = 1000;
const MOST_PARAMS = 100;
/** Servers before 2.8 refuse longer values of parameters. */
const LONGEST_PARAM = 500;

/**
 * MLflow's REST API, https://mlflow.org/docs/latest/rest-api.html: the project is the experiment, the experiment is
 * the run. Environment: MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN or MLFLOW_TRACKING_USERNAME and _PASSWORD.
 */
export class MlflowTracker implements Tracker {
  readonly name = "mlflow";
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private runId = "";
  /** Location of the run's artifacts. */
  private artifacts = "";

  /** @throws ConfigError when no server is named. */
  constructor(env: NodeJS.ProcessEnv) {
    const { MLFLOW_TRACKING_URI: uri, MLFLOW_TRACKING_TOKEN: token } = env;
    if (!uri || !/^https?:/.test(uri)) {
      throw new ConfigError("is not the address of an MLflow server", {
        code: "config/tracker",
        subject: "environment variable MLFLOW_TRACKING_URI",
        expected: "http://... or https://..., as trainer.logger names mlflow",
        received: uri ?? "not set",
        remedy: "start one with `mlflow server`, and set MLFLOW_TRACKING_URI=http://127.0.0.1:5000",
      });
    }
    this.url = `${uri.replace(/\/+$/, "")}/api/2.0/mlflow`;
    const { MLFLOW_TRACKING_USERNAME: user, MLFLOW_TRACKING_PASSWORD: password } = env;
    this.headers = token
      ? { authorization: `Bearer ${token}` }
      : user
        ? { authorization: encodeBasicAuth(user, password ?? "") }
        : {};
  }

  async start(run: TrackedRun, signal: AbortSignal): Promise<unknown> {
    const saved = run.saved as { run_id?: string; artifact_uri?: string } | null;
    if (run.resumedStep !== null && saved?.run_id) {
      await this.post("runs/update", { run_id: saved.run_id, status: "RUNNING" }, signal);
      this.runId = saved.run_id;
      this.artifacts = saved.artifact_uri ?? "";
      return saved;
    }
    const created = await this.post<{ run: { info: { run_id: string; artifact_uri?: string } } }>(
      "runs/create",
      {
        experiment_id: await this.findExperiment(run.project, signal),
        run_name: run.experiment,
        start_time: Date.now(),
        tags: [{ key: "mlflow.source.name", value: "cria" }],
      },
      signal,
    );
    this.runId = created.run.info.run_id;
    this.artifacts = created.run.info.artifact_uri ?? "";
    const params = Object.entries(flattenConfig(run.config)).map(([key, value]) => ({
      key: key.slice(0, 250),
      value: value.slice(0, LONGEST_PARAM),
    }));
    for (let i = 0; i < params.length; i += MOST_PARAMS)
      await this.post("runs/log-batch", { run_id: this.runId, params: params.slice(i, i + MOST_PARAMS) }, signal);
    return { run_id: this.runId, artifact_uri: this.artifacts };
  }

  async log(steps: readonly TrackedStep[], signal: AbortSignal): Promise<void> {
    const metrics = steps.flatMap(({ step, time, metrics: values }) =>
      Object.entries(values).map(([name, value]) => ({ key: makeMetricName(name), value, timestamp: time, step })),
    );
    for (let i = 0; i < metrics.length; i += MOST_METRICS)
      await this.post("runs/log-batch", { run_id: this.runId, metrics: metrics.slice(i, i + MOST_METRICS) }, signal);
    for (const { step, generations } of steps) {
      if (!generations) continue;
      await this.putArtifact(
        `val_step${step}.json`,
        generations.map(({ input, output, groundTruth, score }) => ({
          input,
          output,
          gts: groundTruth ?? null,
          score,
        })),
        signal,
      ).catch((error: unknown) => {
        throw new GenerationsError(error);
      });
    }
  }

  /** Uses the server's own artifact store; only that store's client can write to another one. */
  private async putArtifact(name: string, content: unknown, signal: AbortSignal): Promise<void> {
    const root = /^mlflow-artifacts:(?:\/\/[^/]*)?\/(.*)$/.exec(this.artifacts)?.[1];
    if (root === undefined)
      throw new Error(`the server does not take artifacts (it keeps them in ${this.artifacts || "a place unknown"})`);
    const path = [...root.split("/"), name].map(encodeURIComponent).join("/");
    const url = `${this.url.replace(/\/mlflow$/, "/mlflow-artifacts/artifacts")}/${path}`;
    await requestJson(url, { method: "PUT", headers: this.headers, body: content, signal });
  }

  async finish(status: RunStatus, signal: AbortSignal): Promise<void> {
    const name = { finished: "FINISHED", failed: "FAILED", interrupted: "KILLED" }[status];
    await this.post("runs/update", { run_id: this.runId, status: name, end_time: Date.now() }, signal);
  }

  private async findExperiment(name: string, signal: AbortSignal): Promise<string> {
    try {
      const query = `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`;
      const found = await requestJson<{ experiment: { experiment_id: string } }>(`${this.url}/${query}`, {
        method: "GET",
        headers: this.headers,
        signal,
      });
      return found.experiment.experiment_id;
    } catch (error) {
      if (!(error instanceof HttpError) || !error.body.includes("RESOURCE_DOES_NOT_EXIST")) throw error;
    }
    return (await this.post<{ experiment_id: string }>("experiments/create", { name }, signal)).experiment_id;
  }

  private post<T>(path: string, body: unknown, signal: AbortSignal): Promise<T> {
    return requestJson<T>(`${this.url}/${path}`, { headers: this.headers, body, signal });
  }
}

/** MLflow's names consist of letters, digits and `_-. :/`; `mean@8` becomes `mean_at_8`. */
export function makeMetricName(name: string): string {
  return name.replaceAll("@", "_at_").replace(/[^\w\-. :/]/g, "_");
}
