import { ClusterError } from "@cria/core";
import type { Report } from "@cria/trainer";
import { expect, it, vi } from "vitest";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { CoordinatorImages } from "../images/coordinator-images.js";
import { type JobPayload, MOST_AVOIDED, payloadSchema, scoreJob } from "../jobs/job-kinds.js";
import { MOST_WORK_INLINE, receive } from "../jobs/packed.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { DoItHere } from "./dispatcher.js";
import { Ledger } from "./ledger.js";
import { RemoteJobs } from "./remote-jobs.js";

const sha = "a".repeat(64);

/** A coordinator whose bus answers as the test says. */
function open(submit: (payload: JobPayload) => unknown) {
  const bus: JobBus = {
    ...openLocalBus(),
    submit: async (_, payload) => submit(payloadSchema.parse(payload)) as never,
  };
  const told: string[] = [];
  const report: Report = (event) => event.type === "warning" && told.push(event.text);
  const ledger = new Ledger(bus.stats);
  const images = new CoordinatorImages(bus.blobs, {} as never);
  const jobs = new RemoteJobs(bus, ledger, images, { run: sha, class: "ours", maxTries: 3, report });
  const offer = (avoid: readonly string[]) =>
    jobs.offer(scoreJob, {
      work: () => ({ text: "work", more: new Uint8Array(MOST_WORK_INLINE) }),
      weights: { weights: sha, version: 0 },
      inOwnClass: true,
      avoid: () => avoid,
      read: (result) => receive(bus, result, z.unknown(), "a result"),
    });
  return {
    ask: (avoid: readonly string[] = []) => offer(avoid)(new AbortController().signal),
    ledger,
    told,
    jobs,
    bus,
  };
}

const invalid = () => {
  throw new ClusterError("has an invalid result", { code: "cluster/invalid-result", subject: "a job" });
};

it("repeats a job whose result cannot be used, and does it here in the end", async () => {
  let asked = 0;
  const meta = { class: "ours", seconds: 0 };
  const once = open(({ work }) => (asked++ === 0 ? invalid() : { value: { result: work }, meta, worker: "one" }));
  expect(await once.ask()).toMatchObject({ value: { text: "work" }, worker: "one" });
  expect(once.told).toEqual([expect.stringContaining("the bus has an unusable result")]);
  await expect(open(invalid).ask()).rejects.toBeInstanceOf(DoItHere);
});

it("names as many workers to avoid as a job may, however many are shut out", async () => {
  let avoided: readonly string[] = [];
  const { ask, ledger } = open(({ avoid }) => {
    avoided = avoid;
    return { worker: "worker-250" };
  });
  for (let i = 0; i <= MOST_AVOIDED + 50; i++) ledger.shutOut(`worker-${i}`, "it lies");
  // A worker that was not asked may answer all the same, and its result is refused.
  await expect(ask()).rejects.toBeInstanceOf(DoItHere);
  expect(avoided).toHaveLength(MOST_AVOIDED);
});

it("refuses the result of a worker that must not do the job", async () => {
  let asked: readonly string[] = [];
  const { ask, told } = open(({ avoid, work }) => {
    asked = avoid;
    return { value: { result: work }, meta: { class: "ours", seconds: 0 }, worker: "holder" };
  });
  await expect(ask(["holder"])).rejects.toBeInstanceOf(DoItHere);
  expect(asked).toEqual(["holder"]);
  expect(told).toEqual([expect.stringContaining("holder")]);
  expect(await ask(["another"])).toMatchObject({ worker: "holder" });
});

it("keeps the work of jobs on the bus as long as it is needed", async () => {
  const blobs: string[] = [];
  const ends: (() => void)[] = [];
  const { ask, jobs, bus } = open(async ({ work }) => {
    if ("blob" in work) blobs.push(work.blob);
    await new Promise<void>((end) => ends.push(end));
    return { value: { result: work }, meta: { class: "ours", seconds: 0 }, worker: "one" };
  });
  const asked = [ask(), ask()];
  await vi.waitFor(() => expect(blobs).toHaveLength(2));
  const [blob] = blobs as [string];
  expect(new Set(blobs).size).toBe(1);
  for (const [i, end] of ends.entries()) {
    await jobs.forget();
    expect(await bus.blobs.has(blob)).toBe(true);
    end();
    await asked[i];
  }
  await jobs.forget();
  expect(await bus.blobs.has(blob)).toBe(false);
});
