// Our side, in a separate process: one JSON request as its argument, one JSON answer as its last line of output.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type LlamaModel, loadModel } from "@cria/engine";
import { openTraining, runSft, runTrainingStep, type Training, validate } from "cria";
import { loadConfig, sftConfigSchema, trainConfigSchema } from "cria/config";
import type { OurAnswers, OurRequest, OurStep } from "./requests.js";

type Handlers = { [K in OurRequest["do"]]: (request: Extract<OurRequest, { do: K }>) => Promise<OurAnswers[K]> };

const open = (config: string, changes: readonly string[]): Promise<Training> =>
  openTraining(loadConfig(trainConfigSchema, config, [...changes]).values, dirname(config));

const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
const listTrained = (engine: LlamaModel) => engine.listTensors().filter(({ trainable }) => trainable);

/** An adapter's values, a file for each tensor. */
async function writeValues(engine: LlamaModel, folder: string) {
  mkdirSync(folder, { recursive: true });
  const index = listTrained(engine).map(({ name, shape }) => ({ name, shape: [...shape] }));
  for (const { name } of index) writeFileSync(join(folder, `${name}.value`), bytesOf(await engine.readTensor(name)));
  writeFileSync(join(folder, "index.json"), JSON.stringify(index));
  return index;
}

const handlers: Handlers = {
  async demonstrate({ config, changes, values }) {
    const sft = loadConfig(sftConfigSchema, config, [...changes]).values;
    await runSft(sft, dirname(config));
    const lora = { path: sft.trainer.output_path! };
    const engine = await loadModel({ path: sft.model.path, contextSize: 64, maxSequences: 1, threads: 1, lora });
    const index = await writeValues(engine, values);
    await engine.dispose();
    return { adapter: lora.path, index };
  },

  async train({ config, changes, steps: count, adapter }) {
    const session = await open(config, changes);
    const size = session.config.data.train_batch_size;
    const steps: OurStep[] = [];
    let samples: OurAnswers["train"]["samples"] = [];
    for (let step = 1; step <= count; step++) {
      const rows = session.trainRows.slice((step - 1) * size, step * size);
      const began = performance.now();
      const { trajectories, metrics } = await runTrainingStep(session, { rows, step, epoch: 0 });
      const seconds = (performance.now() - began) / 1e3;
      const timing = (name: string) => metrics[`timing_s/${name}`] ?? 0;
      const [rollout, scoring, training] = [timing("gen"), timing("old_log_prob"), timing("update_actor")];
      const tokens = trajectories.reduce((sum, { responseMask }) => sum + responseMask.reduce((a, b) => a + b, 0), 0);
      const reward = trajectories.reduce((sum, trajectory) => sum + trajectory.reward, 0) / trajectories.length;
      steps.push({ seconds, rollout, scoring, training, tokens, reward });
      console.error(`Cria, step ${step}: ${seconds.toFixed(1)} s, mean reward ${reward.toFixed(2)}`);
      if (step === 1)
        samples = trajectories
          .filter(({ sampleIndex }) => sampleIndex === 0)
          .map(({ tokenIds, promptLength, responseMask, rolloutLogprobs }) => ({
            ...{ tokens: [...tokenIds], promptLength },
            ...{ mask: [...responseMask], logprobs: [...rolloutLogprobs] },
          }));
    }
    const peakMemory = process.resourceUsage().maxRSS * 1024;
    await session.policy.engine.saveAdapter(adapter);
    await session.dispose();
    return { steps, samples, peakMemory };
  },

  async judge({ config, changes, values, adapter }) {
    if (values !== null) {
      const { actor_rollout_ref: actor } = loadConfig(trainConfigSchema, config, [...changes]).values;
      const lora = { rank: actor.model.lora_rank, alpha: actor.model.lora_alpha ?? undefined };
      const engine = await loadModel({ path: actor.model.path, contextSize: 64, maxSequences: 1, threads: 1, lora });
      for (const { name } of listTrained(engine)) {
        const { buffer, byteOffset, byteLength } = readFileSync(join(values, `${name}.value`));
        await engine.writeTensor(name, new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)));
      }
      await engine.saveAdapter(adapter);
      await engine.dispose();
    }
    const session = await open(config, [...changes, `actor_rollout_ref.model.lora_adapter_path=${adapter}`]);
    const { trajectories } = await validate(session, { temperature: 0, step: 0 });
    await session.dispose();
    const succeeded = trajectories.filter(({ rewards }) => rewards.success).length;
    return { success: succeeded / trajectories.length, rows: trajectories.length };
  },
};

const request = JSON.parse(process.argv[2]!) as OurRequest;
const handle = handlers[request.do] as (request: OurRequest) => Promise<unknown>;
console.log(`\n${JSON.stringify(await handle(request))}`);
