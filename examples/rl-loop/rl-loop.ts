// Reinforcement learning in one file, on @cria/engine alone.   npm start [steps] [model.gguf]
//
// GRPO in its plain form: several conversations of each problem, a reward for a right final answer, advantages relative to
// the group, one on-policy step. No critic, no KL term, no clipping (a single update for each batch stays on-policy). The
// model calls a calculator by `<tool_call>`; what the calculator says is part of the context, but never of the loss.
// `cria train` does the same with everything around it: configs, datasets, checkpoints, every known algorithm.
import { fileURLToPath } from "node:url";
import { type LlamaModel, loadModel } from "@cria/engine";

const STEPS = Number(process.argv[2] ?? 30);
const PROBLEMS = 8; // of each step
const SAMPLES = 8; // of each problem: a group
const MAX_TURNS = 3;
const MAX_TOKENS = 48; // of each turn

const path = process.argv[3] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({
  path,
  threads: 1,
  contextSize: 384,
  maxSequences: PROBLEMS * (SAMPLES + 1),
  lora: { rank: 16, alpha: 32 },
});

interface Problem {
  question: string;
  answer: number;
}

interface Rollout {
  tokenIds: number[];
  /** 1 = sampled by the model. */
  mask: number[];
  reward: number;
  advantage: number;
}

const NAMES = ["Ann", "Ben", "Emma", "Leo"];
const pick = (count: number) => Math.floor(Math.random() * count);

function drawProblem(): Problem {
  const [a, b] = [40 + pick(50), 10 + pick(30)];
  const name = NAMES[pick(NAMES.length)];
  return pick(2) === 0
    ? { question: `${name} has ${a} stamps and loses ${b}. How many stamps are left?`, answer: a - b }
    : { question: `There are ${a} balls in a box and ${b} balls in a bag. How many balls in total?`, answer: a + b };
}

const SYSTEM = `You solve problems. Use the tool to compute, then answer with ####.
<tools>
{"name":"calculator","arguments":{"expression":"string"}}
</tools>`;
const renderPrompt = (question: string) =>
  `<|im_start|>system\n${SYSTEM}<|im_end|>\n<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
// The model ends its turn with <|im_end|>; the template puts a newline after it.
const renderToolTurn = (text: string) =>
  `\n<|im_start|>user\n<tool_response>\n${text}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`;

/** What the calculator says to a turn that calls it; null for a turn that does not. */
function callTool(text: string): string | null {
  if (!text.includes("<tool_call>")) return null;
  const [, a, sign, b] = /"expression":"(\d+)([+-])(\d+)"/.exec(text) ?? [];
  if (sign === undefined) return "error: invalid expression";
  return String(sign === "+" ? Number(a) + Number(b) : Number(a) - Number(b));
}

/** One conversation from an evaluated prompt to its last turn. */
async function rollOut(model: LlamaModel, prompt: ReturnType<LlamaModel["createSequence"]>, answer: number) {
  const sequence = prompt.fork();
  const tokenIds = [...prompt.tokenIds];
  const mask = tokenIds.map(() => 0);
  const append = (ids: Int32Array, value: 0 | 1) => {
    tokenIds.push(...ids);
    mask.push(...Array.from(ids, () => value));
  };
  let delta: Int32Array = new Int32Array(0);
  let text = "";
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const result = await sequence.generate(delta, { maxTokens: MAX_TOKENS, temperature: 1 });
    append(result.tokenIds, 1);
    text = result.text;
    const response = result.finishReason === "stop" ? callTool(text) : null;
    if (response === null) break;
    delta = model.tokenize(renderToolTurn(response));
    if (turn + 1 < MAX_TURNS) append(delta, 0);
  }
  sequence.dispose();
  const final = /####\s*(-?\d+)\s*$/.exec(text)?.[1];
  const reward = final !== undefined && Number(final) === answer ? 1 : 0;
  return { tokenIds, mask, reward, advantage: 0 } satisfies Rollout;
}

/** A group: the prompt is evaluated once, and every sample goes on from it. */
async function rollOutGroup({ question, answer }: Problem): Promise<Rollout[]> {
  const prompt = model.createSequence();
  await prompt.prefill(model.tokenize(renderPrompt(question)));
  const group = await Promise.all(Array.from({ length: SAMPLES }, () => rollOut(model, prompt, answer)));
  prompt.dispose();
  const mean = group.reduce((sum, { reward }) => sum + reward, 0) / SAMPLES;
  const deviation = Math.sqrt(group.reduce((sum, { reward }) => sum + (reward - mean) ** 2, 0) / SAMPLES);
  for (const rollout of group) rollout.advantage = (rollout.reward - mean) / (deviation + 1e-6);
  return group;
}

for (let step = 1; step <= STEPS; step++) {
  const started = performance.now();
  const groups = await Promise.all(Array.from({ length: PROBLEMS }, () => rollOutGroup(drawProblem())));
  const rollouts = groups.flat();
  const success = rollouts.reduce((sum, { reward }) => sum + reward, 0) / rollouts.length;
  // A group in which all fared alike has nothing to teach.
  const batch = rollouts
    .filter(({ advantage }) => advantage !== 0)
    .map(({ tokenIds, mask, advantage }) => ({
      tokenIds,
      lossMask: mask,
      columns: { advantages: tokenIds.map(() => advantage) },
    }));
  let gradient = 0;
  if (batch.length > 0) {
    const result = await model.train(
      batch,
      // loss = -mean over tokens of A * logprob; the engine wants its derivative by each token's logprob.
      ({ logprobs, columns, totals }) => {
        const dLogprobs = columns.advantages!.map((advantage) => -advantage / totals.tokens);
        return { loss: dLogprobs.reduce((sum, d, i) => sum + d * logprobs[i]!, 0), dLogprobs };
      },
      { learningRate: 1.5e-3, betas: [0.9, 0.99], maxGradNorm: 1 },
    );
    gradient = result.gradNorm;
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`step ${step}: success ${success.toFixed(2)}, gradient ${gradient.toFixed(3)}, ${seconds} s`);
}

await model.dispose();
