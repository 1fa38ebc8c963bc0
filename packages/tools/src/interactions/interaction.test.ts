import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChatMessage, ToolError } from "@cria/core";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import * as ours from "../internal.js";
import { BaseInteraction, createInteractions, interaction, provideHostModules } from "../internal.js";

const say = (content: string): ChatMessage[] => [
  { role: "user", content: "hi" },
  { role: "assistant", content },
];

/** A game of guessing a secret number. */
function makeGame(released: unknown[] = []) {
  return interaction({
    name: "game",
    create: async ({ groundTruth }) => ({ secret: Number(groundTruth), guesses: 0, solved: false }),
    reply: async ({ answer, state }) => {
      state.guesses++;
      await new Promise((resolve) => setTimeout(resolve, 1));
      state.solved = Number(answer) === state.secret;
      if (state.solved) return { shouldTerminate: true, score: 0.5, data: { guesses: state.guesses } };
      return Number(answer) > state.secret ? "Lower." : { content: "Higher.", score: -0.1 };
    },
    score: ({ solved, guesses }) => (solved ? 1 / guesses : 0),
    release: (state) => void released.push(state.secret),
  });
}

describe("interaction()", () => {
  it("keeps a state for each of several conversations at once, and releases each once", async () => {
    const released: unknown[] = [];
    const game = makeGame(released);
    expect(game).toBeInstanceOf(BaseInteraction);
    expect(game.name).toBe("game");
    const ids = ["a", "b", "c"];
    await Promise.all(ids.map((id, i) => game.startInteraction(id, { ground_truth: i * 10 })));
    const turn = (...guesses: number[]) =>
      Promise.all(ids.map((id, i) => game.generateResponse(id, say(String(guesses[i])))));
    expect(await turn(0, 11, 1)).toEqual([
      { shouldTerminate: true, content: "", score: 0.5, data: { guesses: 1 } },
      { shouldTerminate: false, content: "Lower.", score: 0 },
      { shouldTerminate: false, content: "Higher.", score: -0.1 },
    ]);
    expect((await turn(0, 10, 2))[1]).toMatchObject({ shouldTerminate: true, data: { guesses: 2 } });
    expect(await Promise.all(ids.map((id) => game.calculateScore(id)))).toEqual([0.5, 0.5, 0]);
    await game.finalizeInteraction("b");
    await game.finalizeInteraction("b");
    expect(released).toEqual([10]);
    await expect(game.generateResponse("b", say("1"))).rejects.toMatchObject({
      code: "interaction/unknown-instance",
      subject: "instance b of game",
    });
    await Promise.all(ids.map((id) => game.finalizeInteraction(id)));
    expect(released).toEqual([10, 0, 20]);
    await game.dispose();
  });

  it("may be a function alone, which knows the row's truth, the turn and its kwargs", async () => {
    let seen: unknown;
    const echo = interaction(({ pauseDeadline, ...turn }) => {
      pauseDeadline()();
      seen = turn;
      return `${turn.answer}, ${turn.groundTruth}`;
    });
    expect(echo.name).toBe("interaction");
    const kwargs = { level: 3, name: "echo" };
    await echo.startInteraction("a", { ground_truth: "7", data_source: "test", messages: say("x"), ...kwargs });
    const { signal } = new AbortController();
    const reply = await echo.generateResponse("a", say("yes"), { signal, seed: 5, agentData: { s: 1 }, ...kwargs });
    expect(reply).toEqual({ shouldTerminate: false, content: "yes, 7", score: 0 });
    expect(seen).toEqual({
      instanceId: "a",
      groundTruth: "7",
      dataSource: "test",
      kwargs,
      state: undefined,
      answer: "yes",
      messages: say("yes"),
      seed: 5,
      signal,
      agentData: { s: 1 },
    });
    expect(await echo.calculateScore("a")).toBe(0);
    await echo.finalizeInteraction("a");
  });

  it("makes its state of the row's prompt and kwargs", async () => {
    const made = interaction({
      create: ({ messages, kwargs }) => ({ prompt: messages.map(({ content }) => content), kwargs }),
      reply: ({ state }) => JSON.stringify(state),
    });
    await made.startInteraction("a", { messages: say("x"), level: 3 });
    const { content } = await made.generateResponse("a", []);
    expect(JSON.parse(String(content))).toEqual({ prompt: ["hi", "x"], kwargs: { level: 3 } });
  });

  it("is refused by name if it says nothing", async () => {
    for (const output of [undefined, null, {}, { content: 5 }, { shouldTerminate: false }]) {
      const mute = interaction({ name: "mute", reply: () => output as never });
      await mute.startInteraction("a");
      const error = await mute.generateResponse("a", []).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(ToolError);
      expect(error).toMatchObject({ code: "interaction/bad-reply", subject: 'reply of interaction "mute"' });
    }
    expect(() => interaction({ name: "x" } as never)).toThrow(
      expect.objectContaining({
        code: "interaction/bad-definition",
        subject: "argument of interaction",
        received: '{"name":"x"}',
      }),
    );
    expect(() => interaction({ reply: () => "", scores: () => 1 } as never)).toThrow(
      expect.objectContaining({
        code: "config/unknown-key",
        subject: "interaction: scores",
        expected: 'perhaps "score"',
      }),
    );
    expect(() => interaction(undefined as never)).toThrow(
      expect.objectContaining({
        code: "interaction/bad-definition",
        subject: "argument of interaction",
        received: "nothing",
      }),
    );
  });

  it("infers the types of state and turn", () => {
    interaction({
      create: ({ messages, groundTruth }) => {
        expectTypeOf(messages).toEqualTypeOf<readonly ChatMessage[]>();
        expectTypeOf(groundTruth).toEqualTypeOf<unknown>();
        return { seen: [1] };
      },
      reply: ({ state, answer }) => {
        expectTypeOf(state).toEqualTypeOf<{ seen: number[] }>();
        return answer;
      },
      score: (state) => {
        expectTypeOf(state).toEqualTypeOf<{ seen: number[] }>();
        return 1;
      },
    });
    interaction(({ state }) => {
      expectTypeOf(state).toEqualTypeOf<undefined>();
      return { shouldTerminate: true };
    });
    // @ts-expect-error a reply has a text, or ends the conversation
    interaction(() => ({ score: 1 }));
    // @ts-expect-error nothing is no reply
    interaction(async () => {});
    // @ts-expect-error the state has no such field
    interaction({ create: () => ({ n: "" }), reply: ({ state }) => state.m });
  });
});

describe("a config of interactions", () => {
  let folder: string;
  beforeAll(async () => {
    provideHostModules({ "@cria/tools": ours });
    folder = await mkdtemp(join(tmpdir(), "cria-interaction-"));
    await writeFile(
      join(folder, "mine.ts"),
      `import { interaction } from "@cria/tools";
       export const echo = interaction(({ answer }) => answer + "!");
       export const limited = ({ limit }: { limit: number }, name?: string) =>
         interaction({ name, reply: () => ({ content: String(limit) }) });
       export const five = () => 5;
       export class NotOne {}
      `,
    );
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("names exports of interaction(), and functions that make one of a config", async () => {
    const made = await createInteractions(
      [
        { name: "mine", class_name: "./mine.ts#echo" },
        { name: "limited", class_name: "./mine.ts#limited", config: { limit: 3 } },
      ],
      folder,
    );
    expect([...made.keys()]).toEqual(["mine", "limited"]);
    expect(made.get("mine")!.name).toBe("mine");
    for (const [name, text] of [
      ["mine", "yes!"],
      ["limited", "3"],
    ] as const) {
      await made.get(name)!.startInteraction("a");
      expect((await made.get(name)!.generateResponse("a", say("yes"))).content).toBe(text);
    }
  });

  it("names the problem of an export", async () => {
    const make = (...entries: object[]) => createInteractions(entries as never, folder);
    const echo = { class_name: "./mine.ts#echo" };
    await expect(make({ ...echo, config: { a: 1 } })).rejects.toMatchObject({
      code: "interaction/not-one",
      subject: 'class_name "./mine.ts#echo"',
      received: 'config: {"a":1}',
    });
    await expect(make({ class_name: "./mine.ts#five" })).rejects.toMatchObject({
      code: "interaction/not-one",
      subject: 'class_name "./mine.ts#five"',
      received: "a function that returns something else",
    });
    await expect(make({ class_name: "./mine.ts#NotOne" })).rejects.toMatchObject({
      code: "interaction/not-one",
      subject: 'class_name "./mine.ts#NotOne"',
      received: "no startInteraction, generateResponse, calculateScore, finalizeInteraction",
    });
    // Node loads a .mjs once, and gives the same module again.
    await writeFile(
      join(folder, "plain.mjs"),
      "const f = async () => 0; export const one = { name: 'one', startInteraction: f, generateResponse: f, calculateScore: f, finalizeInteraction: f };",
    );
    const one = { class_name: "./plain.mjs#one" };
    await expect(make({ ...one, name: "a" }, { ...one, name: "b" })).rejects.toMatchObject({
      code: "interaction/duplicate",
      subject: 'class_name "./plain.mjs#one"',
    });
  });
});
