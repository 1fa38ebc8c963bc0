import { allChecks } from "./all-checks.js";
import { GENERATES, LORA } from "./checks/load.js";
import { type Finding, other } from "./finding.js";
import { readKind } from "./list-devices.js";
import type { CheckJob, ModelCheck } from "./model-check.js";
import type { CheckEvents, RunCheck } from "./run-check.js";

export interface DeviceReport {
  /** llama.cpp's name of the device. */
  device: string;
  findings: Finding[];
  seconds: number;
}

export interface ModelReport {
  path: string;
  /** True if no check falls short. */
  ok: boolean;
  devices: DeviceReport[];
}

export interface CheckModelOptions {
  path: string;
  devices: readonly string[];
  threads: number;
  run: RunCheck;
  checks?: readonly ModelCheck[];
  signal?: AbortSignal;
  /** @param done of `total`, in seconds of work. */
  onProgress?(done: number, total: number, row: string): void;
}

/** Runs the list of checks on each device. A model that does not load is not checked further. */
export async function checkModel(options: CheckModelOptions): Promise<ModelReport> {
  const { path, devices, checks = allChecks } = options;
  const reports: DeviceReport[] = [];
  const total = devices.length * checks.reduce((sum, { seconds }) => sum + seconds, 0);
  let done = 0;
  for (const device of devices) {
    const started = performance.now();
    const findings: Finding[] = [];
    for (const check of checks) {
      findings.push(...(await runOne(check, device, findings, options, { done, total })));
      done += check.seconds;
      options.onProgress?.(done, total, "");
      if (!isUsable(findings)) {
        done = devices.length > 1 ? done : total;
        break;
      }
    }
    reports.push({ device, findings, seconds: (performance.now() - started) / 1000 });
  }
  options.onProgress?.(total, total, "");
  const ok = reports.every(({ findings }) => findings.every(({ verdict }) => verdict !== "falls short"));
  return { path, ok, devices: reports };
}

async function runOne(
  check: ModelCheck,
  device: string,
  before: readonly Finding[],
  { path, threads, run, signal, onProgress }: CheckModelOptions,
  { done, total }: { done: number; total: number },
): Promise<Finding[]> {
  signal?.throwIfAborted();
  const lora = before.some(({ name, verdict }) => name === LORA && verdict === "ok");
  if (check.needsLora && before.length > 0 && !lora)
    return [other("not supported", check.name, "needs an adapter, which this model does not support", "see above")];
  let [row, share] = [check.name, 0];
  const tell = () => onProgress?.(done + share * check.seconds, total, row);
  const events: CheckEvents = {
    begin(name) {
      row = name;
      tell();
    },
    advance(reached) {
      share = reached;
      tell();
    },
  };
  const gpu = /^CUDA(\d+)$/.exec(device)?.[1];
  const job: CheckJob = {
    path,
    device: readKind(device),
    gpu: gpu === undefined ? null : Number(gpu),
    threads,
    lora,
  };
  return run(check, job, events, signal);
}

/** True if the model loads, as far as that was tried. */
const isUsable = (findings: readonly Finding[]): boolean =>
  findings.length > 0 && findings.every(({ name, verdict }) => name !== GENERATES || verdict === "ok");
