// Ends `cria train` (also with steps that are sampled ahead, by a sampler of rows, with replayed groups, with a journal
// of a judge that cannot be asked twice, with baselines of two roles, with an adapter for each of them, with trees, with a teacher that samples ever fewer
// turns, with demonstrations beside rewards) and `cria sft` (of an adapter and of all weights) at random instants, half of
// them while a checkpoint is being written, by SIGKILL or (one in three) by SIGINT, SIGTERM or SIGHUP, resumes it, and
// compares metrics and weights with an undisturbed run. Needs a build.
//
//   node scripts/nightly/kill-resume.mjs [--kills 50] [--seed <n>]
//       [--kinds train,train-rae,...] [--out scripts/nightly/kill-resume]
//
// --kinds: default all of train, train-ahead, train-replay, train-journal, train-rae, train-roles, train-trees,
// train-guided, train-demonstrations, sft, sft-full.
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when any resumed run differs.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeTinyModel } from "../../packages/engine/dist/testing.js";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    steps: { type: "string", default: "30" },
    kinds: {
      type: "string",
      default:
        "train,train-ahead,train-replay,train-journal,train-rae,train-roles,train-trees,train-guided,train-demonstrations,sft,sft-full",
    },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    out: { type: "string" },
  },
});
const wanted = Number(values.kills);
const steps = Number(values.steps);
const random = makeRandom(Number(values.seed));

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Most conversations that a kill cuts off: what is asked again within so many answers may have been lost with the
 * process before the journal had it.
 */
const CUT_OFF = 16;

/** The policy plays two roles, one after the other; the seat that it takes first earns more on average. */
const game = `export async function play({ row, session }) {
  const said = {};
  for (const role of ["x", "o"]) {
    const messages = [{ role: "user", content: role + " " + row.prompt[0].content }];
    said[role] = (await session.complete({ messages, maxTokens: 4, role })).message.content;
  }
  const won = said.x < said.o ? 1 : -1;
  return { rewards: { x: won + 0.25, o: -won } };
}
`;

/** A user who asks on twice. */
const asking = `export class Asking {
  name = "asking";
  async startInteraction() {}
  async generateResponse(id, messages) {
    const turns = messages.filter(({ role }) => role === "assistant").length;
    return { shouldTerminate: turns > 2, content: "on " + turns, score: 0 };
  }
  async calculateScore() { return 0; }
  async finalizeInteraction() {}
}
`;

const work = mkdtempSync(join(tmpdir(), "cria-kill-"));
const started = performance.now();
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
try {
  await writeFiles(work);
  const kinds = [];
  for (const name of values.kinds.split(",")) {
    const kind = { name, ...writeConfig(work, name) };
    const wholeStarted = performance.now();
    const whole = await startTraining(kind, "whole").ended;
    if (whole.code !== 0) throw new Error(`the undisturbed run failed: ${whole.stderr}`);
    kinds.push({ ...kind, lifetime: performance.now() - wholeStarted, expected: readRun(kind, "whole") });
  }

  const kills = [];
  const failures = [];
  let rounds = 0;
  while (kills.length < wanted) {
    const kind = kinds[rounds % kinds.length];
    const name = `killed-${++rounds}`;
    while (kills.length < wanted) {
      const kill = await trainAndKill(kind, name);
      if (kill.finished) break;
      kills.push({ round: rounds, kind: kind.name, ...kill });
    }
    const last = await startTraining(kind, name).ended;
    const failure = (what) => ({ round: rounds, kind: kind.name, what });
    if (last.code !== 0) failures.push(failure(`resume failed: ${last.stderr}`));
    else failures.push(...compare(kind.expected, readRun(kind, name)).map(failure));
  }
  const count = (phase) => kills.filter((kill) => kill.phase === phase).length;
  report({
    date: new Date().toISOString(),
    commit,
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    seed: Number(values.seed),
    steps_of_each_run: Object.fromEntries(kinds.map(({ name, steps: of }) => [name, of])),
    weights: Object.fromEntries(kinds.map(({ name, expected }) => [name, hash(expected.weights)])),
    runs: rounds,
    kills: kills.length,
    while_starting: count("starting"),
    while_training: count("training"),
    while_saving: count("saving"),
    seconds: Math.round((performance.now() - started) / 1000),
    failures,
    instants: kills,
  });
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  rmSync(work, { recursive: true, force: true });
}

/**
 * A random policy of a few thousand weights and a teacher, five prompts with a reward that the policy can learn, ten
 * conversations, a game for two and a user who asks on.
 */
async function writeFiles(folder) {
  await makeTinyModel(join(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
  await makeTinyModel(join(folder, "teacher.gguf"), { seed: 11, layers: 3, embeddingScale: 0.3 });
  const rows = ["a", "bb", "ccc", "dddd", "eeeee"].map((content, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    reward_model: { style: "rule", ground_truth: content },
    extra_info: { index },
  }));
  const write = (name, list) =>
    writeFileSync(join(folder, name), list.map((row) => `${JSON.stringify(row)}\n`).join(""));
  write("rows.jsonl", rows);
  write(
    "asked.jsonl",
    rows.map((row) => ({ ...row, extra_info: { ...row.extra_info, interaction_kwargs: { name: "asking" } } })),
  );
  const talks = Array.from({ length: 10 }, (_, i) => ({
    messages: [
      { role: "user", content: `${i}?` },
      { role: "assistant", content: "no ".repeat(i + 1) },
    ],
  }));
  write("talks.jsonl", talks);
  writeFileSync(
    join(folder, "reward.mjs"),
    "export const computeScore = (source, text) => [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, [...text].length);\n",
  );
  writeFileSync(join(folder, "judge.mjs"), makeOneTimeJudge(join(folder, "asked-{}.txt")));
  writeFileSync(join(folder, "game.mjs"), game);
  writeFileSync(join(folder, "game.yaml"), "- { name: game, agent: ./game.mjs#play }\n");
  writeFileSync(join(folder, "asking.mjs"), asking);
  writeFileSync(join(folder, "asking.yaml"), 'interaction: [{ name: asking, class_name: "./asking.mjs#Asking" }]\n');
}

/** A judge whose answer changes when it is asked again later: it writes down what it was asked, outside of the run. */
function makeOneTimeJudge(log) {
  return `import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createHash } from "node:crypto";
export const computeScore = (source, text, truth) => {
  const question = createHash("sha256").update(JSON.stringify([text, truth])).digest("hex");
  const log = ${JSON.stringify(log)}.replace("{}", process.env.CRIA_KILL_RUN);
  const asked = existsSync(log) ? readFileSync(log, "utf8").trim().split("\\n") : [];
  const isLate = asked.slice(0, -${CUT_OFF}).includes(question);
  appendFileSync(log, question + "\\n");
  return isLate ? 1000 : parseInt(question.slice(0, 4), 16) / 65536;
};
`;
}

/** Writes a config; returns its command, the steps of its runs, and their output files. */
function writeConfig(folder, kind) {
  const isSft = kind.startsWith("sft");
  // Its steps are shorter.
  const count = isSft ? 2 * steps : steps;
  const trainer = {
    default_local_dir: folder,
    project_name: kind,
    threads: 1,
    total_training_steps: count,
    save_freq: 1,
    test_freq: 4,
    max_actor_ckpt_to_keep: 3,
  };
  const file = join(folder, `${kind}.yaml`);
  if (kind === "train-journal") Object.assign(trainer, { journal: true, save_freq: 6, test_freq: -1 });
  const lag = { "train-ahead": 2, "train-replay": 1, "train-journal": 1, "train-roles": 1 }[kind];
  if (lag !== undefined) trainer.v1 = { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: lag } };
  writeFileSync(file, JSON.stringify(isSft ? makeSftConfig(trainer, kind) : makeTrainConfig(trainer, kind)));
  const adapters = kind === "train-roles" ? ["adapter_x.gguf", "adapter_o.gguf"] : ["adapter.gguf"];
  const weights = kind === "sft-full" ? ["model.gguf"] : adapters;
  return { command: isSft ? "sft" : "train", config: file, steps: count, runs: join(folder, kind), weights };
}

/** Sections that a kind of training adds to the config. */
function listAdditions(kind) {
  const asked = {
    data: { train_files: "asked.jsonl", val_files: "asked.jsonl" },
    rollout: {
      response_length: 96,
      max_tokens_per_turn: 4,
      multi_turn: { interaction_config_path: "asking.yaml", max_assistant_turns: 3 },
    },
  };
  switch (kind) {
    // The estimator's state is a baseline for each role. The game rewards itself.
    case "train-rae":
    case "train-roles":
      return {
        algorithm: { adv_estimator: "rae" },
        model: kind === "train-roles" ? { lora_roles: ["x", "o"] } : {},
        rollout: { response_length: 64, agent: { default_agent_loop: "game", agent_loop_config_path: "game.yaml" } },
        reward: null,
      };
    case "train-trees":
      return {
        ...asked,
        algorithm: { adv_estimator: "tree_grpo" },
        rollout: { ...asked.rollout, tree: { expansions: 1 } },
      };
    // In the last third of the steps the teacher samples no turn.
    case "train-guided":
      return {
        ...asked,
        distillation: {
          enabled: true,
          teacher_models: { large: { model_path: "teacher.gguf" } },
          guided: { share: 0.5, steps: Math.ceil((2 / 3) * steps) },
        },
      };
    // Each update draws others.
    case "train-demonstrations":
      return {
        actor: { demonstration_coeff: 0.5 },
        data: { demonstrations: { files: ["talks.jsonl"], size: 3 } },
      };
    // The batches of later steps depend on the outcomes of earlier ones.
    case "train-replay":
      return {
        algorithm: { replay: { share: 1, size: 5, max_age: 3 } },
        data: { sampler: { class_name: "difficulty" } },
      };
    // Longer answers, so that none comes twice.
    case "train-journal":
      return { data: { val_files: null }, rollout: { response_length: 24 }, reward: "judge.mjs" };
    default:
      return {};
  }
}

function makeTrainConfig(trainer, kind) {
  /** @type {Record<string, any>} */
  const additions = listAdditions(kind);
  const { algorithm = {}, model, actor, rollout, data, distillation = {}, reward = "reward.mjs" } = additions;
  const length = rollout?.response_length ?? 8;
  return {
    algorithm,
    distillation,
    actor_rollout_ref: {
      model: { path: "model.gguf", lora_rank: 4, lora_alpha: 8, ...model },
      actor: { optim: { lr: 1e-2, lr_warmup_steps: 5 }, ppo_mini_batch_size: 1, ...actor },
      rollout: {
        ...{ n: 4, prompt_length: 48, response_length: length, max_num_seqs: 16, seed: 1, deterministic: true },
        ...rollout,
      },
    },
    data: {
      train_files: "rows.jsonl",
      val_files: "rows.jsonl",
      train_batch_size: 2,
      max_prompt_length: 48,
      max_response_length: length,
      ...data,
    },
    ...(reward ? { custom_reward_function: { path: reward } } : {}),
    trainer,
  };
}

function makeSftConfig(trainer, kind) {
  return {
    model: { path: "model.gguf", lora_rank: kind === "sft-full" ? 0 : 4 },
    data: { train_files: "talks.jsonl", val_files: "talks.jsonl", train_batch_size: 4 },
    optim: { lr: 1e-3 },
    trainer,
  };
}

function startTraining({ command, config }, name) {
  const bin = join(root, "apps", "trainer", "bin", "cria.mjs");
  const child = spawn(process.execPath, [bin, command, config, "--json", `trainer.experiment_name=${name}`], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, CRIA_KILL_RUN: name },
  });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const ended = new Promise((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stderr }));
  });
  return { child, ended };
}

/** One process, killed at a random instant of its life, or shortly after it began to write a checkpoint. */
async function trainAndKill(kind, name) {
  const checkpoints = join(kind.runs, name, "checkpoints");
  const isSaving = () => list(checkpoints).some((entry) => entry.endsWith(".tmp"));
  const { child, ended } = startTraining(kind, name);
  const start = performance.now();
  let running = true;
  ended.then(() => {
    running = false;
  });
  await sleep(random() * kind.lifetime);
  if (random() < 0.5) {
    while (running && !isSaving()) await sleep(0.5);
    await sleep(random() * 12);
  }
  const done = readSteps(kind, name);
  const phase = isSaving() ? "saving" : done.length > 0 ? "training" : "starting";
  const by = /** @type {NodeJS.Signals} */ (
    random() < 1 / 3 ? Object.keys(exitCodes)[Math.floor(3 * random())] : "SIGKILL"
  );
  child.kill(by);
  const { code, signal, stderr } = await ended;
  // A process that does not listen yet is ended by the signal itself.
  const isEnded = signal === by || code === exitCodes[by];
  if (!isEnded && code !== 0) throw new Error(`a resumed run failed: ${stderr}`);
  return { finished: !isEnded, by, ms: Math.round(performance.now() - start), steps_done: done.at(-1) ?? 0, phase };
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readSteps(kind, name) {
  try {
    return readMetrics(kind, name).map((line) => line["training/global_step"]);
  } catch {
    return [];
  }
}

function readMetrics(kind, name) {
  const text = readFileSync(join(kind.runs, name, "metrics.jsonl"), "utf8");
  return text
    .slice(0, text.lastIndexOf("\n"))
    .split("\n")
    .map((line) => JSON.parse(line));
}

/**
 * Kinds whose conversations take over tokens in the KV cache from whichever other one is there: how many tokens depends on
 * the clock, and nothing else does.
 */
function takesOver({ name }) {
  return ["train-trees", "train-guided", "train-roles"].includes(name);
}

/** The results of a run, without those that depend on the clock. */
function readRun(kind, name) {
  const timed = /^(timing_|perf\/(throughput|time_per_step|.*memory.*))/;
  const cached = /^engine\/(prefill|reused)_tokens$/;
  const metrics = readMetrics(kind, name).map((line) =>
    Object.fromEntries(
      Object.entries(line).filter(([key]) => !timed.test(key) && !(takesOver(kind) && cached.test(key))),
    ),
  );
  const weights = kind.weights.map((file) => readFileSync(join(kind.runs, name, file)));
  return { metrics, weights: Buffer.concat(weights) };
}

function compare(expected, actual) {
  const differences = [];
  if (actual.metrics.length !== expected.metrics.length)
    differences.push(`${actual.metrics.length} lines of metrics, ${expected.metrics.length} expected`);
  expected.metrics.forEach((line, i) => {
    for (const [key, value] of Object.entries(line)) {
      const other = actual.metrics[i]?.[key];
      if (other !== value) differences.push(`line ${i}: ${key} is ${other}, ${value} expected`);
    }
  });
  if (!actual.weights.equals(expected.weights)) differences.push("the trained weights have other bytes");
  return differences;
}

function report(result) {
  console.log(JSON.stringify({ ...result, instants: undefined }));
  if (!values.out) return;
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const table = result.instants
    .map((kill) => `| ${kill.round} | ${kill.kind} | ${kill.by} | ${kill.ms} | ${kill.steps_done} | ${kill.phase} |`)
    .join("\n");
  writeFileSync(
    `${values.out}.md`,
    `# Killed and resumed

\`node scripts/nightly/kill-resume.mjs --kills ${wanted} --seed ${values.seed}\`, ${result.date}, commit ${result.commit},
Node ${result.node}, ${result.cpu}.

${result.kills} processes ended by a signal, two in three by SIGKILL (${result.while_starting} while starting, ${result.while_training} while training,
${result.while_saving} while a checkpoint was being written), over ${result.runs} runs (steps: ${Object.entries(
      result.steps_of_each_run,
    )
      .map(([kind, of]) => `${kind} ${of}`)
      .join(", ")}) with a checkpoint after each step
(train-journal: after each sixth; its judge answers otherwise when it is asked again later).
Metrics of every step and the bytes of the trained weights, compared with an undisturbed run: **${result.failures.length} differences**.
It took ${result.seconds} s.

| runs of | SHA-256 of the weights of the undisturbed one |
| --- | --- |
${Object.entries(result.weights)
  .map(([kind, sha256]) => `| ${kind} | ${sha256} |`)
  .join("\n")}

| run | of | by | ended after, ms | steps done | phase |
| --- | --- | --- | --- | --- | --- |
${table}
`,
  );
}

function hash(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
