import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { interaction, tool } from "@cria/tools";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import type { TrainingBus } from "../cluster/training-bus.js";
import type { Report, RunEvent } from "../events.js";
import { JournalFile } from "../journal/journal-file.js";
import type { Environment } from "../task/environment.js";
import { writeCallParser } from "../testing/call-parser.js";
import { hashSync } from "../testing/hash-sync.js";
import { snapshotFolder } from "../testing/snapshot-folder.js";
import {
  openTinyTraining,
  type TinyTraining,
  type TinyTrainingOptions,
  writeTinyRun,
} from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
const appends = vi.spyOn(JournalFile.prototype, "append");
afterEach(() => {
  appends.mockClear();
});
afterAll(() => {
  appends.mockRestore();
  models.cleanUp();
});

const oneCall = writeCallParser(models.folder, "pay");
const twoCalls = writeCallParser(models.folder, "pay", ["1", "2"]);

/** The world outside a training, which is not set back when the training is killed. */
class World {
  /** Everything that was asked, in order. */
  readonly asked: string[] = [];
  /** Changes what is answered from now on. */
  salt = 0;
  /** Called before each answer. */
  onAsk: (count: number) => void = () => undefined;

  private turn: Promise<void> = Promise.resolve();

  /** Answers one question after the other, each once the answers before it are on disk, however slow that is. */
  async ask(subject: string): Promise<number> {
    const { turn } = this;
    let end = () => {};
    this.turn = new Promise((resolve) => {
      end = resolve;
    });
    await turn;
    await Promise.allSettled(appends.mock.results.map(({ value }) => value));
    this.asked.push(subject);
    this.onAsk(this.asked.length);
    // The journal has begun to write this answer by then.
    setImmediate(end);
    return createHash("sha256").update(`${this.salt} ${subject}`).digest().readUInt16LE();
  }
}

interface Case {
  lag?: number;
  more?: TinyTrainingOptions;
  /** The tool's own part; default: it keeps no state. */
  open?: (world: World, training: TinyTraining) => void;
}

/** A tool that gives other answers at another time. */
function openPay(world: World, { environment }: TinyTraining): void {
  set(environment, "pay", async (text) => `paid ${await world.ask(text)}`);
}

function set(environment: Environment, name: string, answer: (text: string) => Promise<string>): void {
  (environment.tools as Map<string, unknown>).set(
    name,
    tool({
      name,
      description: "Pays.",
      inputSchema: { type: "object", properties: { text: { type: "string" } } },
      execute: async ({ text }: { text?: unknown }) => answer(String(text)),
    }),
  );
}

const options = ({ lag = 0, more = {} }: Case): TinyTrainingOptions => ({
  prompts: ["a", "bb", "ccc"],
  // The reward depends on the text, and so on the tool's answer.
  reward: "return [...text].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 997, 7) / 997;",
  ...more,
  contextSize: 200,
  // One conversation at a time: what was answered before the kill is known.
  maxSequences: 1,
  data: { train_batch_size: 1, max_response_length: 150, ...more.data },
  actor: { ppo_mini_batch_size: 1, ...more.actor },
  rollout: {
    n: 2,
    response_length: 150,
    max_tokens_per_turn: 3,
    multi_turn: {
      enable: true,
      format: oneCall,
      max_assistant_turns: 4,
      ...(more.rollout?.multi_turn as object),
    },
  },
  trainer: {
    total_training_steps: 3,
    val_before_train: false,
    journal: true,
    save_freq: 1,
    ...(lag > 0 ? { v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: lag } } } : {}),
    ...more.trainer,
  },
});

async function train(given: Case, world: World, from?: TinyTraining, report?: Report) {
  const training = await openTinyTraining(models, options(given));
  if (from) {
    training.config.trainer.default_local_dir = join(from.folder, "killed");
    training.config.actor_rollout_ref.model.path = from.config.actor_rollout_ref.model.path;
  }
  (given.open ?? openPay)(world, training);
  try {
    const summary = await runTraining(training, { configFolder: training.folder, report });
    return { ...summary, training, sha: hashSync(summary.weights) };
  } finally {
    await training.dispose();
  }
}

/**
 * Trains to the end, and leaves in `killed` what a kill while question `at` is answered would have left. The world
 * answers otherwise from then on.
 */
async function trainWithKill(given: Case, at: number) {
  const world = new World();
  let folder = "";
  const whole = await train(
    {
      ...given,
      open: (world, training) => {
        folder = training.folder;
        (given.open ?? openPay)(world, training);
      },
    },
    Object.assign(world, {
      onAsk: (count: number) => {
        if (count !== at) return;
        snapshotFolder(join(folder, "cria"), join(folder, "killed", "cria"));
        world.salt = 1;
      },
    }),
  );
  return { whole, asked: world.asked };
}

/** Goes on after the kill, in the same world. */
async function goOn(given: Case, whole: { training: TinyTraining }) {
  const world = new World();
  world.salt = 1;
  const result = await train(given, world, whole.training);
  return { ...result, asked: world.asked };
}

const journalOf = (folder: string) => join(folder, "killed", "cria", "default", "journal");

describe("a training with a journal", () => {
  it.each([
    [0, 3],
    [0, 9],
    [0, 17],
    [1, 4],
    [1, 8],
    [2, 10],
  ])(
    "with a lag of %i: killed at question %i it goes on to the bits of the run that was not, and asks nothing twice",
    async (lag, at) => {
      const { whole, asked } = await trainWithKill({ lag }, at);
      // Their number depends on the answers' lengths, and with a lag the clock decides which ones come after the kill.
      expect(asked.length).toBeGreaterThanOrEqual(at);
      const resumed = await goOn({ lag }, whole);
      expect(resumed.sha).toBe(whole.sha);
      // The question that the kill cut off is asked again, and no other.
      expect(resumed.asked.toSorted()).toEqual(asked.slice(at - 1).toSorted());
    },
  );

  it("without it, questions are asked again and the bits are others", async () => {
    const more = { trainer: { journal: false } };
    const { whole, asked } = await trainWithKill({ more }, 9);
    const resumed = await goOn({ more }, whole);
    expect(resumed.asked.length).toBeGreaterThan(asked.length - 8);
    expect(resumed.sha).not.toBe(whole.sha);
    expect(existsSync(journalOf(whole.training.folder))).toBe(false);
  });

  it("keeps the answers until a checkpoint has the step, and none after the last", async () => {
    const trainer = { save_freq: 2 };
    const { whole, asked } = await trainWithKill({ more: { trainer } }, 9);
    // Step 1 is done, and in no checkpoint.
    expect(readdirSync(journalOf(whole.training.folder))).toEqual(["1.jsonl", "2.jsonl"]);
    expect(readdirSync(join(whole.path, "journal"))).toEqual([]);
    const resumed = await goOn({ more: { trainer } }, whole);
    expect(resumed.sha).toBe(whole.sha);
    expect(resumed.asked.toSorted()).toEqual(asked.slice(8).toSorted());
  });

  it("a line that the kill cut short is asked again; a damaged one ends the run, before anything is asked", async () => {
    const { whole, asked } = await trainWithKill({}, 9);
    const folder = journalOf(whole.training.folder);
    const file = join(folder, "2.jsonl");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/\d\w/, "zz"));
    const world = new World();
    await expect(train({}, world, whole.training)).rejects.toMatchObject({ code: "data/bad-journal" });
    expect(world.asked).toEqual([]);
    writeFileSync(file, text);
    appendFileSync(file, text.slice(0, 50));
    const resumed = await goOn({}, whole);
    expect(resumed.sha).toBe(whole.sha);
    expect(resumed.asked.toSorted()).toEqual(asked.slice(8).toSorted());
  });

  it("an answer counts only for the question that was asked: other draws ask anew, and say so", async () => {
    const { whole } = await trainWithKill({}, 9);
    const world = new World();
    const said: string[] = [];
    const open = (world: World, training: TinyTraining) => {
      training.settings.seed = 99;
      openPay(world, training);
    };
    const report = (event: RunEvent) => void (event.type === "notice" && said.push(event.text));
    await train({ open }, world, whole.training, report);
    expect(world.asked.length).toBe(12);
    expect(said.filter((text) => text.includes("2.jsonl"))).toHaveLength(1);
  });

  it("a tool that keeps a state is asked again to bring it there, and its recorded answers count", async () => {
    const sums: number[] = [];
    const open = (world: World, { environment }: TinyTraining) => {
      (environment.tools as Map<string, unknown>).set(
        "pay",
        tool({
          name: "pay",
          description: "Pays.",
          inputSchema: { type: "object", properties: { text: { type: "string" } } },
          create: () => ({ calls: 0 }),
          execute: async ({ text }: { text?: unknown }, { state }) => {
            sums.push(++state.calls);
            const { calls } = state;
            return `${calls} ${await world.ask(String(text))}`;
          },
        }),
      );
    };
    // Within a conversation: question 8 is the second of its conversation.
    const { whole } = await trainWithKill({ open }, 8);
    sums.length = 0;
    const resumed = await goOn({ open }, whole);
    expect(resumed.sha).toBe(whole.sha);
    expect(sums.slice(0, 2)).toEqual([1, 2]);
  });

  it("distinguishes the calls of a turn", async () => {
    const multi_turn = {
      format: twoCalls,
      max_parallel_calls: 2,
      max_assistant_turns: 3,
    };
    const more = { rollout: { multi_turn } };
    const { whole, asked } = await trainWithKill({ more }, 13);
    expect(asked.length).toBe(24);
    const resumed = await goOn({ more }, whole);
    expect(resumed.sha).toBe(whole.sha);
    expect(resumed.asked.toSorted()).toEqual(asked.slice(12).toSorted());
  });

  it("names agents whose code it does not reach", async () => {
    const training = await openTinyTraining(models, options({}));
    training.registries.agentLoops.register("mine", {
      factory: () => ({ run: () => Promise.reject(new Error("not now")) }),
      traits: { prompt: false, tools: false, interactions: false, scores: true },
    });
    training.environment.defaultAgentLoop = "mine";
    const said: string[] = [];
    const report = (event: RunEvent) => void (event.type === "notice" && said.push(event.text));
    await expect(runTraining(training, { configFolder: training.folder, report })).rejects.toThrow("not now");
    expect(said.filter((text) => text.startsWith("trainer.journal") && text.includes("mine"))).toHaveLength(1);
    await training.dispose();
  });

  it("records replies and scores of interactions, failures too", async () => {
    const open = (world: World, { environment }: TinyTraining) => {
      const user = interaction({
        name: "user",
        reply: async ({ answer }) => {
          const value = await world.ask(answer);
          // Once, before the kill.
          if (world.salt === 0 && world.asked.length === 2) throw new Error(`busy ${value}`);
          return `no ${value}`;
        },
        score: async () => (await world.ask("score")) / 65536,
      });
      Object.assign(environment, { interactions: new Map([["user", user]]), tools: new Map(), reward: null });
    };
    const more: TinyTrainingOptions = {
      rollout: { n: 3, multi_turn: { format: "hermes" } },
      row: { data_source: "user", extra_info: { index: 0, interaction_kwargs: { name: "user" } } },
      trainer: { save_freq: 3 },
    };
    // In the second step: the first is in no checkpoint.
    const { whole, asked } = await trainWithKill({ open, more }, 14);
    expect(whole.steps[0]).toMatchObject({ "rollout/failed": 1 });
    const resumed = await goOn({ open, more }, whole);
    expect(resumed.steps[0]).toMatchObject({ "rollout/failed": 1 });
    expect(resumed.sha).toBe(whole.sha);
    expect(resumed.asked.toSorted()).toEqual(asked.slice(13).toSorted());
  });

  it("records judgements of single conversations", async () => {
    const open = (world: World, { environment }: TinyTraining) => {
      const reward = async (_source: string, text: string) => (await world.ask(text)) / 65536;
      Object.assign(environment, { reward, tools: new Map() });
    };
    const more: TinyTrainingOptions = {
      rollout: { multi_turn: { enable: false, format: "hermes" } },
      trainer: { save_freq: 3 },
    };
    // The first question of the second step: all of the first are answered.
    const { whole, asked } = await trainWithKill({ open, more }, 3);
    const resumed = await goOn({ open, more }, whole);
    expect(resumed.sha).toBe(whole.sha);
    expect(resumed.asked.toSorted()).toEqual(asked.slice(2).toSorted());
  });

  it("is refused with a bus, whose workers it does not reach", async () => {
    const { config, folder } = await writeTinyRun(models, options({}));
    const bus = {} as TrainingBus;
    await expect(openTraining(config, folder, { bus })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "trainer.journal",
    });
  });
});
