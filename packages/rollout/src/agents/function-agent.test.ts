import { setTimeout as sleep } from "node:timers/promises";
import { type ChatMessage, EngineError, hasFailed, type ToolSchema, type Trajectory } from "@cria/core";
import { type EpisodePlace, findEpisode } from "@cria/episodes";
import { describe, expect, it } from "vitest";
import type { ChatModel } from "../chat/chat-model.js";
import { agentLoops } from "../loops/agent-loops.js";
import { type AgentOptions, defaultAgentOptions } from "../loops/agent-options.js";
import { placeAsEarned } from "../rewards/place-as-earned.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";
import type { AgentContext, AgentFunction } from "./agent-function.js";
import { makeFunctionAgent } from "./function-agent-loop.js";

const user = (content: string): ChatMessage => ({ role: "user", content });

/** Runs episodes of an agent; the policy says what `reply` says, else its seed. */
async function run(
  agent: (context: AgentContext) => unknown,
  more: Partial<FakeRolloutOptions> & { agentOptions?: Partial<AgentOptions> } = {},
) {
  const warnings: string[] = [];
  const { agentOptions, ...options } = more;
  const loops = agentLoops.extend();
  loops.register("mine", makeFunctionAgent(agent as AgentFunction<never>));
  const rollout = makeFakeRollout({
    reply: ({ options }) => `said ${options.seed}`,
    reward: null,
    defaultAgentLoop: "mine",
    agentLoops: loops,
    agent: { ...defaultAgentOptions, ...agentOptions },
    onWarning: (text) => void warnings.push(text),
    ...options,
  });
  const trajectories = await rollout.run([makeRow({ extra_info: { row: { question: "why?" } } })]);
  const { counts } = rollout.engine;
  expect(counts.disposed).toBe(counts.created);
  return { ...rollout, trajectories, trajectory: trajectories[0]!, warnings };
}

const ask = async ({ session }: AgentContext, messages: ChatMessage[]) =>
  (await session.complete({ messages })).message;

describe("an agent of one's own", () => {
  it("asks any questions about its row; its result is the reward, on all sampled tokens", async () => {
    const { trajectory, engine } = await run(async (context) => {
      const { question } = context.row as { question: string };
      const first = await ask(context, [{ role: "system", content: "Be brief." }, user(question)]);
      await ask(context, [{ role: "system", content: "Be brief." }, user(question), first, user("sure?")]);
      return { score: 0.5, note: "fine", steps: 2 };
    });
    expect(trajectory).toMatchObject({ reward: 0.5, numTurns: 4, finishReason: "stop" });
    expect(trajectory.segments).toBeUndefined();
    expect(trajectory.rewards.parts).toEqual([{ name: "score", value: 0.5, weight: 1, by: "the agent" }]);
    expect(trajectory.extraFields).toMatchObject({ note: "fine", steps: 2 });
    expect(trajectory.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant"]);
    const sampled = trajectory.tokenIds.filter((_, t) => trajectory.responseMask[t] === 1);
    expect(engine.detokenize(sampled)).toMatch(/^said \d+<\|im_end\|>said \d+<\|im_end\|>$/);
    expect(trajectory.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1 });
  });

  it("sub-agents are conversations of one episode; parallel calls replay in any order", async () => {
    const episode = async (delays: readonly number[]) => {
      const { trajectory } = await run(async (context) => {
        const plan = await ask(context, [user("plan")]);
        const found = await Promise.all(
          ["a", "b", "c"].map(async (part, i) => {
            await sleep(delays[i]);
            return (await ask(context, [{ role: "system", content: "You search." }, user(part)])).content;
          }),
        );
        await ask(context, [user("plan"), plan, user(found.join())]);
        return 1;
      });
      return trajectory;
    };
    const first = await episode([0, 5, 10]);
    const second = await episode([10, 5, 0]);
    expect(first.segments).toHaveLength(4);
    expect(first.segments!.map(({ parent }) => parent)).toEqual([-1, -1, -1, -1]);
    expect(first.segments![0]!.messages[0]!.content).toBe("plan");
    const record = ({ tokenIds, responseMask, rolloutLogprobs, segments, messages }: Trajectory) => ({
      tokenIds,
      responseMask,
      rolloutLogprobs,
      segments,
      messages,
    });
    expect(record(second)).toEqual(record(first));
  });

  it("a compacted history opens a branch, in which the summary is the agent's word and not the policy's", async () => {
    const { trajectory, engine } = await run(async (context) => {
      const messages = [user("start")];
      for (const next of ["one", "two"]) messages.push(await ask(context, messages), user(next));
      const last = messages.at(-1)!;
      await ask(context, [user("start"), { role: "assistant", content: "SUMMARY" }, last]);
      return 1;
    });
    expect(trajectory.metrics).toMatchObject({ chat_branches: 1, chat_roots: 1 });
    const place = engine.detokenize(trajectory.tokenIds).indexOf("SUMMARY");
    expect(place).toBeGreaterThan(0);
    const masked = trajectory.tokenIds.filter((_, t) => trajectory.responseMask[t] === 0);
    expect(engine.detokenize(masked)).toContain("SUMMARY");
  });

  describe("settings of a run hold for an agent as for the loop", () => {
    const weather = { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
    const tools: ToolSchema[] = [{ type: "function", function: { description: "How warm it is.", ...weather } }];
    const callOnce = async ({ session }: AgentContext) => {
      const first = await session.complete({ messages: [user("warm?")], tools });
      const [called] = first.message.tool_calls!;
      const answer: ChatMessage = { role: "tool", tool_call_id: called!.id, content: "12" };
      await session.complete({ messages: [user("warm?"), first.message, answer], tools });
      return 1;
    };
    const written = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>';
    const reply: FakeRolloutOptions["reply"] = ({ turn }) => (turn === 0 ? `Let me see.${written}` : "12 degrees");

    it("train_on_tool_calls", async () => {
      for (const trainOnToolCalls of [true, false]) {
        const { trajectory, engine } = await run(callOnce, { reply, multiTurn: { trainOnToolCalls } });
        const { start, end, count } = trajectory.timeline!.turns[0]!.toolCalls!;
        expect(count).toBe(1);
        expect(engine.detokenize(trajectory.tokenIds.subarray(start, end))).toBe(written);
        expect([...trajectory.responseMask.subarray(start, end)]).toEqual(
          Array(end - start).fill(trainOnToolCalls ? 1 : 0),
        );
        expect(trajectory.responseMask[start - 1]).toBe(1);
      }
    });

    /** Like Qwen3's: reasoning is dropped from every assistant turn but the last. */
    const forgetful =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    const think: FakeRolloutOptions["reply"] = ({ turn }) => `<think>hm ${turn}</think>said ${turn}`;
    const askTwice = async (context: AgentContext) => {
      const first = await ask(context, [user("a?")]);
      await ask(context, [user("a?"), first, user("b?")]);
      return 1;
    };
    const listChecks = ({ metrics }: Trajectory) =>
      Object.entries(metrics).filter(([name]) => name.startsWith("tokenization_"));

    it("the sanity check", async () => {
      expect(listChecks((await run(callOnce, { reply })).trajectory)).toEqual([]);
      expect(listChecks((await run(askTwice, { reply: think })).trajectory)).toEqual([]);
      const options = { reply: think, engine: { chatTemplate: forgetful } };
      const { trajectory } = await run(askTwice, options);
      expect(listChecks(trajectory)).toEqual([["tokenization_rewritten", 1]]);
      expect(trajectory.extraFields.tokenization).toMatchObject({ kind: "rewritten" });
      const off = await run(askTwice, { ...options, multiTurn: { tokenizationSanityCheckMode: "disable" } });
      expect(listChecks(off.trajectory)).toEqual([]);
    });

    it("use_inference_chat_template: a rewritten turn opens a branch, and both are trained on", async () => {
      const seen: string[] = [];
      const { trajectory, engine, options } = await run(askTwice, {
        reply: (asked) => {
          const turn = seen.push(asked.text) - 1;
          return think({ ...asked, turn });
        },
        engine: { chatTemplate: forgetful },
        multiTurn: { useInferenceChatTemplate: true },
      });
      const said: ChatMessage = { role: "assistant", content: "<think>hm 0</think>said 0" };
      expect(seen[1]).toBe(options.tokenizer.render([user("a?"), said, user("b?")], [], true));
      expect(seen[1]).not.toContain("hm 0");
      expect(trajectory.metrics).toMatchObject({ chat_branches: 1 });
      expect(trajectory.segments).toHaveLength(2);
      const sampled = engine.detokenize(trajectory.tokenIds.filter((_, t) => trajectory.responseMask[t] === 1));
      expect(sampled).toBe("<think>hm 0</think>said 0<|im_end|><think>hm 1</think>said 1<|im_end|>");
      expect(listChecks(trajectory)).toEqual([]);
      // If the template rewrites nothing, there is one conversation.
      const plain = await run(askTwice, { reply: think, multiTurn: { useInferenceChatTemplate: true } });
      expect(plain.trajectory.segments).toBeUndefined();
    });

    it("token rewards for valid calls", async () => {
      const found: unknown[] = [];
      const aggregate: FakeRolloutOptions["aggregate"] = (earned) => {
        found.push(earned.toolCalls);
        return placeAsEarned(earned);
      };
      await run(callOnce, { reply, aggregate });
      expect(found).toEqual([[expect.objectContaining({ value: 1 })]]);
    });
  });

  it("an answer can be rewarded by itself, also if the agent returns nothing", async () => {
    const { trajectory } = await run(async ({ session }) => {
      const { node } = await session.complete({ messages: [user("a")] });
      session.reward(0.25, node);
      session.reward(2);
      expect(() => session.reward(1, "nowhere")).toThrow(
        expect.objectContaining({ code: "chat/bad-request", subject: "reward: node" }),
      );
      expect(() => session.reward(Number.NaN)).toThrow(
        expect.objectContaining({ code: "chat/bad-request", subject: "reward: value" }),
      );
    });
    expect(trajectory.rewards.score).toBe(2);
    expect(trajectory.turnScores).toEqual([{ value: 0.25, tokenIndex: trajectory.tokenIds.length - 1 }]);
    expect(trajectory.responseMask.at(-1)).toBe(1);
  });

  it("an endless agent is stopped by its cap and scores 0, or by its deadline and fails", async () => {
    const forever = async (context: AgentContext) => {
      const messages = [user("go")];
      for (;;) messages.push(await ask(context, messages), user("on"));
    };
    const capped = await run(forever, { agentOptions: { maxCalls: 3 } });
    expect(capped.trajectory).toMatchObject({ reward: 0, finishReason: "length" });
    expect(capped.trajectory.error).toBeUndefined();
    expect(capped.trajectory.metrics.chat_calls).toBe(3);
    const full = await run(forever, { maxPromptLength: 100, responseLength: 200 });
    expect(full.trajectory).toMatchObject({ reward: 0, finishReason: "length" });
    expect(full.trajectory.tokenIds.length).toBeLessThanOrEqual(300);
    const slow = await run(() => new Promise(() => undefined), { agentOptions: { timeoutS: 0.05 } });
    expect(hasFailed(slow.trajectory)).toBe(true);
    expect(slow.trajectory.error).toBe("the agent gave no result within 0.05 s (rollout.agent.timeout_s)");
  });

  it("an agent that throws has failed, with its message; so has one without a score, unless the task judges", async () => {
    let calls = 0;
    const agent = async (context: AgentContext) => {
      await ask(context, [user("a")]);
      if (calls++ === 0) throw new TypeError("no such file");
      return 1;
    };
    const { trajectories } = await run(agent, { n: 2 });
    const [failed] = trajectories.filter(hasFailed);
    expect(failed!.error).toContain("no such file");
    expect(failed!.responseMask).not.toContain(1);
    expect(trajectories.filter((t) => !hasFailed(t))).toHaveLength(1);

    let silent = 0;
    const unsure = async (context: AgentContext) => {
      await ask(context, [user("a")]);
      return silent++ === 0 ? undefined : true;
    };
    const unjudged = await run(unsure, { n: 2 });
    expect(unjudged.trajectories.filter(hasFailed).map(({ error }) => error)).toEqual([
      expect.stringContaining("the agent gave no score"),
    ]);
    const judged = await run(async (context) => void (await ask(context, [user("a")])), { reward: () => 3 });
    expect(judged.trajectory.reward).toBe(3);
  });

  it("a wrong score fails its episode alone, and the error has the received value", async () => {
    for (const [wrong, received] of [
      [Number.NaN, "NaN"],
      [Number.POSITIVE_INFINITY, "Infinity"],
      [{ score: Number.NaN, note: "x" }, "NaN"],
      [{ score: "0.5" }, '"0.5"'],
      ["0.5", '"0.5"'],
      [1n, "1"],
    ] as const) {
      let calls = 0;
      const agent = async (context: AgentContext) => {
        await ask(context, [user("a")]);
        return calls++ === 0 ? wrong : 1;
      };
      const { trajectories } = await run(agent, { n: 2 });
      const [failed, ...others] = trajectories.filter(hasFailed);
      expect(failed!.error).toContain(`received ${received}`);
      expect(others).toEqual([]);
      expect(failed!.responseMask).not.toContain(1);
    }
    const judged = await run(async (context) => (await ask(context, [user("a")])) && "text", { reward: () => 3 });
    expect(judged.trajectory.reward).toBe(3);
  });

  it("reports unfinished calls when it returns, and ends nothing", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    let late: (() => void) | undefined;
    const { trajectory, warnings } = await run(async ({ session }) => {
      await session.complete({ messages: [user("a")] });
      void session.complete({ messages: [user("forgotten")] });
      void session.complete(null as never);
      late = () => {
        session.reward(5);
        void session.complete({ messages: [user("late")] });
      };
      return 1;
    });
    late!();
    await sleep(0);
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(trajectory.error).toBeUndefined();
    expect(trajectory.rewards.score).toBe(1);
    expect(warnings.sort()).toEqual([
      expect.stringContaining("a call was still running when its agent returned"),
      expect.stringContaining("a reward came after its session had ended"),
    ]);
  });

  it("libraries' own promises of forgotten calls reject nothing either", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    const settled: string[] = [];
    // As a library does: its promise is another one than the session's.
    const wrap = async (session: ChatModel, text: string) => {
      try {
        await session.complete({ messages: [user(text)] });
      } finally {
        settled.push(text);
      }
    };
    let late: (() => void) | undefined;
    const { trajectories } = await run(
      async ({ session }) => {
        await session.complete({ messages: [user("a")] });
        void wrap(session, "running");
        late = () => void wrap(session, "late");
        throw new Error("the agent's own");
      },
      { n: 2 },
    );
    late!();
    await sleep(0);
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(settled).toEqual([]);
    for (const { error } of trajectories) expect(error).toContain("the agent's own");
  });

  it("an error that reaches nobody fails its episode while its agent runs, and no other", async () => {
    let episodes = 0;
    let late: EpisodePlace["fail"];
    const { trajectories } = await run(
      async (context) => {
        const isFirst = episodes++ === 0;
        await ask(context, [user("a")]);
        const { fail } = findEpisode()!;
        if (!isFirst) late = fail;
        else expect([fail!(new Error("forgotten")), fail!(new Error("another"))]).toEqual([true, true]);
        return 1;
      },
      { n: 2 },
    );
    expect(trajectories.map(({ error }) => error)).toEqual(["forgotten", undefined]);
    expect(late!(new Error("late"))).toBe(false);
  });

  it("aborts an agent that such an error failed, and takes no errors of one that threw, or of the engine", async () => {
    let signal: AbortSignal | undefined;
    let fail: EpisodePlace["fail"];
    const agent = async (context: AgentContext, end: () => unknown) => {
      await ask(context, [user("a")]);
      ({ fail } = findEpisode()!);
      ({ signal } = context);
      return end();
    };
    await run((context) => agent(context, () => fail!(new Error("forgotten")) && new Promise(() => {})));
    expect(signal!.aborted).toBe(true);
    // Its calls end with it, and reject.
    expect(fail!(new Error("more"))).toBe(true);
    const { trajectory } = await run((context) => agent(context, () => Promise.reject(new Error("thrown"))));
    expect(trajectory.error).toBe("thrown");
    expect(signal!.aborted).toBe(false);
    expect(fail!(new Error("late"))).toBe(false);
    const cause = new EngineError("is out of memory", { code: "engine/out-of-memory", subject: "model" });
    const ended = await run((context) => agent(context, () => (fail!(new Error("stray", { cause })) ? 0 : 1)));
    expect(ended.trajectory.reward).toBe(1);
  });

  it("an error that reaches nobody after the last call that an agent may make scores 0", async () => {
    const { trajectory } = await run(
      async ({ session }) => {
        await session.complete({ messages: [user("a")] });
        // As a library does that nobody waits for.
        void session.complete({ messages: [user("b")] }).catch(findEpisode()!.fail);
        return new Promise(() => {});
      },
      { agentOptions: { maxCalls: 1 } },
    );
    expect(trajectory).toMatchObject({ reward: 0, finishReason: "length" });
    expect(trajectory.error).toBeUndefined();
  });

  it("a late agent's calls are aborted, so that it ends", async () => {
    let ended: Promise<unknown> | undefined;
    const { trajectory } = await run(
      ({ session, signal }) => {
        const ask = () => session.complete({ messages: [user("a")] }).catch((reason: unknown) => reason);
        ended = new Promise((resolve) => signal.addEventListener("abort", () => resolve(ask())));
        return new Promise(() => {});
      },
      { agentOptions: { timeoutS: 0.001 } },
    );
    expect(trajectory.error).toContain("agent.timeout_s");
    expect(await ended).toBeInstanceOf(Error);
  });

  it("a wrong request is the agent's own failure, and ends no run", async () => {
    let calls = 0;
    const { trajectories } = await run(
      async ({ session }) => {
        if (calls++ === 0) await session.complete({ messages: [] });
        await session.complete({ messages: [user("a")] });
        return 1;
      },
      { n: 2 },
    );
    expect(trajectories.map(hasFailed).sort()).toEqual([false, true]);
    expect(trajectories.find(hasFailed)!.error).toContain("messages");
  });

  it("a training keeps its own sampling, whatever the agent asks, and warns once", async () => {
    const temperatures: (number | undefined)[] = [];
    const { warnings, trajectory } = await run(
      async ({ session }: { session: ChatModel }) => {
        for (const temperature of [0, 0.3])
          await session.complete({ messages: [user(`${temperature}`)], sampling: { temperature } });
        return 1;
      },
      {
        reply: ({ options }) => {
          temperatures.push(options.temperature);
          return "x";
        },
      },
    );
    expect(temperatures).toEqual([1, 1]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("a training samples as its config says");
    expect(trajectory.metrics.chat_sampling_overridden).toBe(2);
  });

  it("effects of its tools happen once, also where its question was cut off and asked again", async () => {
    let effects = 0;
    const impatient = new AbortController();
    const reply = ({ options }: { options: { seed?: number } }) => {
      impatient.abort(new Error("too slow"));
      return `said ${options.seed}`;
    };
    const agent = async (context: AgentContext) => {
      const first = context.session.complete({ messages: [user("act")] }, { signal: impatient.signal });
      await expect(first).rejects.toThrow("too slow");
      const again = await ask(context, [user("act")]);
      effects++;
      await ask(context, [user("act"), again, user("done")]);
      return effects;
    };
    const { trajectory } = await run(agent, { reply });
    expect(effects).toBe(1);
    // The undelivered answer was given to the repeated request.
    expect(trajectory.segments).toBeUndefined();
    expect(trajectory.metrics).toMatchObject({ chat_calls: 2, chat_retries: 1 });
  });

  it("an agent that never asks has nothing to learn from", async () => {
    const { trajectory } = await run(() => 1);
    expect(trajectory.tokenIds).toHaveLength(0);
    expect(trajectory.rewards.score).toBe(1);
  });
});
