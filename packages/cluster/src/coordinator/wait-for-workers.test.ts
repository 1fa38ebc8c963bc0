import type { ClusterView } from "@cria/records";
import type { RunEvent } from "@cria/trainer";
import { expect, it } from "vitest";
import { WITHOUT_TRAINING } from "../jobs/job-kinds.js";
import { waitForWorkers } from "./wait-for-workers.js";

it("reports for each worker once its state or its missing part, also for one without a model", async () => {
  const lacks = [WITHOUT_TRAINING, "prepares for a training", "has no model", "has no model", null];
  const seen = lacks.map((reason) => [{ id: "anna", class: "", reason }] as ClusterView["workers"]);
  const events: RunEvent[] = [];
  const count = () => (seen.length === 0 ? 1 : 0);
  await waitForWorkers(1, count, () => seen.shift()!, { report: (event) => events.push(event) });
  expect(events.map((event) => "text" in event && event.text)).toEqual([
    "waiting for 1 worker",
    "worker anna: prepares for a training",
    "worker anna: has no model",
  ]);
});
