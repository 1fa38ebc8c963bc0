import { z } from "zod";
import { dataOptions, datasetClassOptions, samplerOptions } from "../options/data.js";
import { demonstrationOptions } from "../options/demonstrations.js";
import { environmentOptions } from "../options/environment.js";
import { imageKeys } from "./vision.js";

const { shape: data } = dataOptions;
const { shape: datasetClass } = datasetClassOptions;
const { shape: sampler } = samplerOptions;
const { shape: demonstrations } = demonstrationOptions;
const { shape: environment } = environmentOptions;

export const dataSection = z.strictObject({
  train_files: data.trainFiles,
  val_files: data.valFiles,
  map: data.map,
  train_batch_size: data.batchSize,
  prompt_key: data.promptKey,
  reward_fn_key: data.rewardFnKey,
  ...imageKeys,
  video_key: data.videoKey,
  max_prompt_length: environment.maxPromptLength,
  max_response_length: environment.maxResponseLength,
  filter_overlong_prompts: data.filterOverlongPrompts,
  truncation: environment.truncation,
  cache_dir: data.cacheDir,
  need_tools_kwargs: data.needToolsKwargs,
  return_full_prompt: environment.returnFullPrompt,
  shuffle: data.shuffle,
  seed: data.seed,
  train_max_samples: data.trainMaxSamples,
  val_max_samples: data.valMaxSamples,
  apply_chat_template_kwargs: data.templateKwargs,
  allow_control_tokens: data.allowControlTokens,
  sampler: z
    .strictObject({ class_path: sampler.path, class_name: sampler.name, sampler_kwargs: sampler.kwargs })
    .prefault({}),
  demonstrations: z
    .strictObject({
      files: demonstrations.files,
      size: demonstrations.size,
      keep: demonstrations.keep,
      messages_key: demonstrations.messagesKey,
      tools_key: demonstrations.toolsKey,
    })
    .prefault({}),
  custom_cls: z.strictObject({ path: datasetClass.path, name: datasetClass.name }).prefault({}),
});
