import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasFailed } from "@cria/core";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { ChatSession } from "../chat/chat-session.js";
import type { AgentEndpoint } from "../loops/agent-endpoint.js";
import { agentLoops } from "../loops/agent-loops.js";
import { type AgentOptions, defaultAgentOptions } from "../loops/agent-options.js";
import { makeFakeRollout, makeRow } from "../testing/index.js";
import { loadAgentLoops } from "./load-agent-loops.js";

const folder = mkdtempSync(join(tmpdir(), "cria-command-"));
afterAll(() => rmSync(folder, { recursive: true }));

const open = new Set<ChatSession>();
/** Addresses that nobody answers; what a program gets over HTTP is tested with the endpoint itself. */
const endpoint: AgentEndpoint = {
  add: async (session) => {
    open.add(session);
    return { url: "http://127.0.0.1:9", apiKey: `key-of-${session.id}`, close: () => open.delete(session) };
  },
};

/** Runs an episode of a JavaScript program. */
async function run(program: string, options: Partial<AgentOptions> = {}, info: object = { row: { question: "why?" } }) {
  writeFileSync(join(folder, "agent.mjs"), program);
  const loops = agentLoops.extend();
  await loadAgentLoops([{ name: "mine", command: [process.execPath, "agent.mjs"] }], folder, loops);
  const rollout = makeFakeRollout({
    reply: () => "hi",
    reward: null,
    defaultAgentLoop: "mine",
    agentLoops: loops,
    agent: { ...defaultAgentOptions, loadEndpoint: async () => endpoint, ...options },
  });
  const trajectories = await rollout.run([makeRow({ extra_info: info })]);
  // After a deadline nobody waits for what the program's end still does.
  await vi.waitFor(() => expect(open.size).toBe(0), 10_000);
  return trajectories[0]!;
}

describe("an agent that is a program", () => {
  it("starts in its folder with row, addresses and key; its last line is the reward", async () => {
    const trajectory = await run(`
      import { readFileSync } from "node:fs";
      const { OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, CRIA_SESSION_URL, CRIA_MODEL, CRIA_ROW_FILE } = process.env;
      const row = JSON.parse(readFileSync(0, "utf8"));
      const same = readFileSync(CRIA_ROW_FILE, "utf8") === JSON.stringify(row);
      console.log("thinking");
      console.log(JSON.stringify({ reward: 0.5, question: row.question, same, OPENAI_BASE_URL, ANTHROPIC_BASE_URL, CRIA_MODEL,
        isItsOwn: OPENAI_API_KEY === "key-of-" + CRIA_SESSION_URL.split("/").at(-1), no_proxy: process.env.no_proxy, file: CRIA_ROW_FILE, cwd: process.cwd() }));
    `);
    expect(trajectory.error).toBeUndefined();
    expect(trajectory.reward).toBe(0);
    expect(trajectory.rewards.score).toBe(0.5);
    expect(trajectory.extraFields).toMatchObject({
      question: "why?",
      same: true,
      isItsOwn: true,
      OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
      cwd: folder,
      no_proxy: expect.stringMatching(/(^|,)127\.0\.0\.1$/),
    });
    expect(existsSync(trajectory.extraFields.file as string)).toBe(false);
  });

  it("may reward the roles of its calls in its last line", async () => {
    const trajectory = await run(`console.log(JSON.stringify({ rewards: { x: 1, o: -1 }, rounds: 3 }));`);
    expect(trajectory.error).toBeUndefined();
    expect(trajectory.rewards.score).toBe(0);
    expect(trajectory.extraFields).toMatchObject({ rounds: 3 });
  });

  it("gets a file's row by the names of its columns", async () => {
    const program = `
      import { readFileSync } from "node:fs";
      console.log(JSON.stringify({ reward: 1, row: JSON.parse(readFileSync(0, "utf8")) }));
    `;
    const { extraFields } = await run(program, {}, { level: 3 });
    expect(extraFields.row).toMatchObject({
      data_source: "test",
      ground_truth: "7",
      prompt: [{ role: "user", content: "hi" }],
      extra_info: { level: 3 },
    });
  });

  it("a nonzero exit fails the episode, with its output", async () => {
    const trajectory = await run(`console.error("no such tool"); process.exitCode = 3;`);
    expect(hasFailed(trajectory)).toBe(true);
    expect(trajectory.error).toMatch(/agent\.mjs\) exited with 3:\nno such tool/);
    const missing = await run("import './none.mjs'");
    expect(missing.error).toContain("none.mjs");
  });

  it("no reward at all is a failed episode too", async () => {
    expect((await run(`console.log("done")`)).error).toContain("the agent gave no score");
  });

  it("is killed whole when its time is up, and at its end", async () => {
    const child = (then: string) => `
      import { spawn } from "node:child_process";
      import { writeFileSync } from "node:fs";
      const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
      writeFileSync("child.pid", String(child.pid));
      ${then}
    `;
    const isAlive = async () => {
      const pid = Number(readFileSync(join(folder, "child.pid"), "utf8"));
      // A killed process is there until init has collected it.
      const stateOf = () => {
        try {
          return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))![1]!;
        } catch {
          return "gone";
        }
      };
      for (let i = 0; i < 100 && !["gone", "Z", "X"].includes(stateOf()); i++)
        await new Promise((resolve) => setTimeout(resolve, 50));
      return !["gone", "Z", "X"].includes(stateOf());
    };
    const late = await run(child("setInterval(() => {}, 1000);"), { timeoutS: 3 });
    expect(late.error).toContain("no result within 3 s");
    expect(await isAlive()).toBe(false);
    const left = await run(child(`console.log('{"reward": 1}'); process.exit(0);`));
    expect(left.rewards.score).toBe(1);
    expect(await isAlive()).toBe(false);
  });

  it("an entry names one thing to run", async () => {
    await expect(loadAgentLoops([{ name: "x" }], folder)).rejects.toMatchObject({
      ...{ code: "config/bad-value", subject: 'agent loop "x"', received: "none of them" },
    });
    await expect(loadAgentLoops([{ name: "x", class_name: "a", command: ["b"] }], folder)).rejects.toMatchObject({
      ...{ code: "config/bad-value", subject: 'agent loop "x"', received: "2 of them" },
    });
  });
});
