import { TinyModels } from "@cria/engine/testing";
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, expect, it } from "vitest";
import { runTrainingStep } from "../step/training-step.js";
import { openTinyTraining } from "../testing/tiny-training.js";

const models = new TinyModels();
afterAll(async () => {
  trace.disable();
  await models.cleanUp();
});

it("trainer.tracing: a step's episodes are traces where it is on, and train the same", async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const take = async (tracing: string) => {
    exporter.reset();
    const training = await openTinyTraining(models, { trainer: { tracing } });
    const { trajectories, metrics } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    const tokens = trajectories.map((t) => [...t.tokenIds]);
    return { tokens, loss: metrics["actor/pg_loss"], gradient: metrics["actor/grad_norm"] };
  };
  const traced = await take("otel");
  expect(exporter.getFinishedSpans().filter(({ name }) => name.startsWith("invoke_agent"))).toHaveLength(12);
  expect(await take("off")).toEqual(traced);
  expect(exporter.getFinishedSpans()).toEqual([]);
});
