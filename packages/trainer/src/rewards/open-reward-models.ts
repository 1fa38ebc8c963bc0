import { readFileSync } from "node:fs";
import { ConfigError, type PolicyEngine, readOrThrow } from "@cria/core";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import { loadValueModel } from "@cria/engine/internal";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { resolvePath } from "../config/paths.js";
import type { RewardModelEntry } from "../config/sections/reward-models-config.js";
import { ChatEndpoint } from "./chat-endpoint.js";
import { GenerativeJudge, writeWithEndpoint, writeWithEngine } from "./generative-judge.js";
import { GroupJudge, writeGroupsWithEndpoint, writeGroupsWithEngine } from "./group-judge.js";
import { defaultRubric, GroupPrompt } from "./group-prompt.js";
import { defaultTemplates, JudgePrompt } from "./judge-prompt.js";
import type { GroupRewardModel, RewardModel } from "./reward-model.js";
import { RewardModels, type WeightedRewardModel } from "./reward-models.js";
import { ScoreHead } from "./score-head.js";
import { weighWithEndpoint, weighWithEngine, YesNoScorer } from "./yes-no-scorer.js";

/**
 * Opens the reward models in `reward_model.model`.
 * @throws ConfigError for a duplicate name, a bad template or pattern, or a file without a head; EngineError.
 */
export async function openRewardModels(entries: readonly RewardModelEntry[], load: Loading): Promise<RewardModels> {
  const names = nameModels(entries);
  // Checks all entries before the first model is loaded.
  const opened = entries.map((entry, i) => prepareModel(entry, `reward_model.model[${i}]`, load));
  const models: WeightedRewardModel[] = [];
  try {
    for (const [i, open] of opened.entries()) {
      const { weight, max_num_seqs, timeout_s, type, path } = entries[i]!;
      models.push({
        name: names[i]!,
        weight,
        model: await open(),
        // Forward passes run one after another anyway, and waiting must not count as their time.
        concurrency: type === "judge" || type === "group_rank" || path === null ? max_num_seqs : 1,
        timeoutS: timeout_s ?? load.timeoutS,
      });
    }
  } catch (error) {
    for (const { model } of models) await model.dispose?.();
    throw error;
  }
  return new RewardModels(models);
}

/** @throws ConfigError for two equal names, which would share their metrics. */
function nameModels(entries: readonly RewardModelEntry[]): string[] {
  const names = entries.map(({ name }, i) => name ?? (entries.length === 1 ? "rm" : `rm_${i}`));
  const twice = names.find((name, i) => name === "rule" || names.indexOf(name) !== i);
  if (twice === undefined) return names;
  throw new ConfigError("is taken", {
    code: "config/bad-value",
    subject: "reward_model.model: name",
    expected: 'another name for each model, and not "rule"',
    received: twice,
  });
}

/** Device and threads of reward models. */
export interface JudgeDevice extends Pick<LoadModelOptions, "device" | "threads"> {}

interface Loading extends JudgeDevice {
  /** Base of relative paths. */
  folder: string;
  /** Default time limit of a judgement in seconds; null: no limit. */
  timeoutS: number | null;
}

/** Checks an entry. @returns a function that loads its model. */
function prepareModel(
  entry: RewardModelEntry,
  subject: string,
  load: Loading,
): () => Promise<RewardModel | GroupRewardModel> {
  if (entry.type === "score_head") return () => openScoreHead(entry, load);
  if (entry.type === "group_rank") return prepareGroupJudge(entry, subject, load);
  const prompt = readPrompt(entry, entry.type, subject, load.folder);
  if (entry.type === "yes_no") return () => openYesNo(entry, prompt, load);
  const format = { pattern: readPattern(entry, subject), min: entry.min_score, max: entry.max_score };
  return async () => {
    const options = { maxTokens: entry.max_tokens, temperature: entry.temperature };
    const endpoint = makeEndpoint(entry);
    if (endpoint) return new GenerativeJudge(writeWithEndpoint(endpoint, options), prompt, format);
    const { engine, tokenizer } = await loadChatModel(entry, load, {
      contextSize: entry.max_model_len,
      maxSequences: entry.max_num_seqs,
    });
    return new GenerativeJudge(writeWithEngine(engine, tokenizer, options), prompt, format, () => engine.dispose());
  };
}

function prepareGroupJudge(entry: RewardModelEntry, subject: string, load: Loading): () => Promise<GroupJudge> {
  const { group_output, rubric, min_score, max_score, max_tokens, temperature, max_group_tokens } = entry;
  const format = { output: group_output, minScore: min_score, maxScore: max_score };
  const path = entry.prompt_template_path === null ? null : resolvePath(load.folder, entry.prompt_template_path);
  const named = path ?? `${subject}: the template of group_rank`;
  const prompt = new GroupPrompt(path, { ...format, rubric: rubric ?? defaultRubric }, named);
  return async () => {
    const verdicts = { maxTokens: max_tokens, temperature };
    const options = { ...format, maxGroupTokens: max_group_tokens };
    const endpoint = makeEndpoint(entry);
    if (endpoint) return new GroupJudge(writeGroupsWithEndpoint(endpoint, verdicts), prompt, options);
    const { engine, tokenizer } = await loadChatModel(entry, load, {
      contextSize: max_group_tokens + max_tokens,
      maxSequences: entry.max_num_seqs,
    });
    return new GroupJudge(writeGroupsWithEngine(engine, tokenizer, verdicts), prompt, options, () => engine.dispose());
  };
}

async function openYesNo(entry: RewardModelEntry, prompt: JudgePrompt, load: Loading): Promise<RewardModel> {
  const endpoint = makeEndpoint(entry);
  if (endpoint) return new YesNoScorer(weighWithEndpoint(endpoint, entry), prompt);
  const { engine, tokenizer } = await loadChatModel(entry, load, {
    ...scoring,
    scoredContextSize: entry.max_model_len,
  });
  const weigh = weighWithEngine(engine, tokenizer, entry, entry.max_model_len);
  return new YesNoScorer(weigh, prompt, () => engine.dispose());
}

/** Only a trainable model has the scoring graph; its untrained adapter changes nothing. */
const scoring: Partial<LoadModelOptions> = {
  contextSize: 64,
  maxSequences: 1,
  trainable: "lora",
  lora: { rank: 1, alpha: 1 },
};

async function openScoreHead(entry: RewardModelEntry, load: Loading): Promise<RewardModel> {
  const path = resolvePath(load.folder, entry.path!);
  const { engine, tokenizer } = await loadChatModel(entry, load, { contextSize: 64, maxSequences: 1 });
  const { trainable, lora } = scoring;
  const backbone = await loadValueModel({
    path,
    device: load.device,
    threads: load.threads,
    scoredContextSize: entry.max_model_len,
    trainable,
    lora,
  }).catch(async (error) => {
    await engine.dispose();
    throw error;
  });
  const headPath = resolvePath(load.folder, entry.head_path!);
  return ScoreHead.open({ backbone, vocabulary: engine, tokenizer }, headPath, entry.max_model_len);
}

async function loadChatModel(
  entry: RewardModelEntry,
  { folder, device, threads }: Loading,
  options: Partial<LoadModelOptions>,
): Promise<{ engine: PolicyEngine; tokenizer: DeltaTokenizer }> {
  const engine = await loadModel({ path: resolvePath(folder, entry.path!), device, threads, ...options });
  try {
    return { engine, tokenizer: DeltaTokenizer.forModel(engine, { kwargs: entry.apply_chat_template_kwargs }) };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

function makeEndpoint(entry: RewardModelEntry): ChatEndpoint | null {
  if (entry.base_url === null) return null;
  return new ChatEndpoint({
    baseUrl: entry.base_url,
    model: entry.model,
    apiKey: process.env[entry.api_key_env],
    retries: entry.num_retries,
    retryDelayS: entry.retry_delay_s,
  });
}

/** @throws ConfigError when it does not compile or has no capture group. */
function readPattern({ score_pattern }: RewardModelEntry, subject: string): RegExp {
  try {
    const pattern = new RegExp(score_pattern, "i");
    // An alternative that always matches reveals the number of groups.
    if (new RegExp(`${score_pattern}|`).exec("")!.length > 1) return pattern;
  } catch {
    // Reported by the error below.
  }
  throw new ConfigError("does not find scores", {
    code: "config/bad-value",
    subject: `${subject}.score_pattern`,
    expected: "a regular expression with a group around the number",
    received: score_pattern,
  });
}

function readPrompt(
  entry: RewardModelEntry,
  type: keyof typeof defaultTemplates,
  subject: string,
  folder: string,
): JudgePrompt {
  const { min_score, max_score, yes, no, prompt_template_path: given } = entry;
  const path = given === null ? null : resolvePath(folder, given);
  return new JudgePrompt(
    path === null ? defaultTemplates[type] : readTemplate(path, subject),
    { min_score, max_score, yes, no },
    path ?? `${subject}: the template of ${type}`,
  );
}

function readTemplate(path: string, subject: string): string {
  return readOrThrow(() => readFileSync(path, "utf8"), ConfigError, {
    subject: `${subject}.prompt_template_path`,
    expected: "a readable Jinja file",
  });
}
