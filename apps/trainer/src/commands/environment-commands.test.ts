import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { EnvReport } from "../check-env/finding.js";
import type { RolloutSummary } from "../rollout/summarize-rollouts.js";
import { captureOutput } from "../testing/capture-output.js";
import { checkEnvCommand } from "./check-env.js";
import { initCommand } from "./init.js";
import { rolloutCommand } from "./rollout.js";

const models = new TinyModels();
const work = mkdtempSync(join(tmpdir(), "cria-environment-"));
afterAll(async () => {
  await models.cleanUp();
  rmSync(work, { recursive: true, force: true });
});

const output = captureOutput();

const commands = { rollout: rolloutCommand, "check-env": checkEnvCommand, init: initCommand };

/** Runs a command in this process; returns its exit code. */
async function run(name: keyof typeof commands, ...rawArgs: string[]): Promise<number> {
  process.exitCode = undefined;
  await runCitty(commands[name] as typeof initCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

async function runJson<T>(name: keyof typeof commands, ...rawArgs: string[]): Promise<{ code: number; result: T }> {
  output.stdout = "";
  const code = await run(name, ...rawArgs, "--json");
  return { code, result: JSON.parse(output.stdout) as T };
}

describe("cria rollout", () => {
  it("writes each trajectory as a line, in order, and sums up", async () => {
    const { folder } = await writeTinyRun(models);
    const out = join(work, "some", "where.jsonl");
    const { code, result } = await runJson<RolloutSummary>(
      "rollout",
      join(folder, "config.yaml"),
      "--rows=2",
      `--out=${out}`,
      "actor_rollout_ref.rollout.n=3",
    );
    expect([code, output.stderr]).toEqual([0, ""]);
    expect(result).toMatchObject({ rows: 2, trajectories: 6, failed: 0, file: out });
    const lines = readFileSync(out, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map((line) => [line.row, line.sample])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
    for (const line of lines) {
      expect(line.token_ids.length).toBe(line.response_mask.length);
      expect(line.request_states.at(-1).state).toBe("completed");
      expect(line.loop_states[0].state).toBe("pending");
      expect(line.turns[0]).toMatchObject({ role: "assistant", start: line.prompt_length });
      expect(line.error).toBeNull();
    }
    const mean = lines.reduce((sum, line) => sum + line.reward, 0) / 6;
    expect(result.reward!.mean).toBeCloseTo(mean);
    expect(result.metrics.prefill_tokens).toBeGreaterThanOrEqual(lines[0].prompt_length + lines[3].prompt_length);
    expect(readdirSync(join(work, "some"))).toEqual(["where.jsonl"]);
  });

  it("num_repeat_rollouts takes the place of n; the same seed gives the same conversations", async () => {
    const { folder } = await writeTinyRun(models, { rollout: { multi_turn: { num_repeat_rollouts: 2 } } });
    const files = ["a.jsonl", "b.jsonl"].map((name) => join(work, name));
    for (const file of files) {
      const { result } = await runJson<RolloutSummary>("rollout", join(folder, "config.yaml"), `--out=${file}`);
      expect(result.trajectories).toBe(6);
    }
    const [a, b] = files.map((file) => readFileSync(file, "utf8").match(/"token_ids":\[[^\]]*\]/g));
    expect(a).toEqual(b);
  });

  it("--keep and --as: writes the filtered conversations, as a dump or for cria sft", async () => {
    // Some conversations earn the reward, others do not.
    const { folder } = await writeTinyRun(models, { reward: "return text.length % 2;" });
    const config = join(folder, "config.yaml");
    const [all, good, talks] = ["all", "good", "talks"].map((name) => join(work, `keep-${name}.jsonl`)) as [
      string,
      string,
      string,
    ];
    const read = (file: string) =>
      readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    await runJson("rollout", config, `--out=${all}`);
    const wanted = read(all).filter((line) => line.reward >= 1);
    expect(wanted.length).toBeGreaterThan(0);
    expect(wanted.length).toBeLessThan(12);
    const kept = await runJson<RolloutSummary & { written: number }>(
      "rollout",
      config,
      `--out=${good}`,
      "--keep=reward>=1",
    );
    // The summary covers all conversations.
    expect([kept.code, kept.result.trajectories, kept.result.written]).toEqual([0, 12, wanted.length]);
    expect(read(good).map((line) => line.token_ids)).toEqual(wanted.map((line) => line.token_ids));

    // The embedded policy solves some problems, with calls.
    const calculator = join(import.meta.dirname, "..", "..", "..", "..", "examples", "calculator", "config.yaml");
    const few = [calculator, "--rows=4", "trainer.threads=1", "actor_rollout_ref.rollout.n=4"];
    await runJson("rollout", ...few, `--out=${all}`);
    const solved = read(all).filter((line) => line.reward >= 1 && line.finish_reason === "stop");
    expect(solved.length).toBeGreaterThan(0);
    expect(solved.length).toBeLessThan(16);
    output.stdout = "";
    expect(
      await run("rollout", ...few, `--out=${talks}`, "--as", "messages", "--keep", "reward>=1 && !truncated"),
    ).toBe(0);
    expect(output.stdout).toContain(talks);
    const rows = read(talks);
    expect(rows).toHaveLength(solved.length);
    for (const [i, { messages, tools }] of rows.entries()) {
      expect(messages.at(-1)).toMatchObject({ role: "assistant", content: expect.stringContaining("####") });
      expect(messages.filter(({ role }: { role: string }) => role === "tool")).toHaveLength(
        solved[i].metrics.tool_calls,
      );
      expect(tools[0].function.name).toBe("calculator");
    }
    for (const [words, message] of [
      [["--keep=reward>1"], /keep-none\.jsonl: [\s\S]*--keep/],
      [["--keep=reward>>1"], /--keep/],
      [["--keep=rewad>=1"], /--keep[\s\S]*reward/],
      [["--as=parquet"], /--as[\s\S]*trajectories[\s\S]*messages[\s\S]*parquet/],
    ] as const) {
      output.stderr = "";
      const none = join(work, "keep-none.jsonl");
      expect(await run("rollout", config, `--out=${none}`, ...words)).toBe(1);
      expect(output.stderr).toMatch(message);
      expect(existsSync(none)).toBe(false);
    }
  });

  it("draws a progress bar and prints a summary for people", async () => {
    const { folder } = await writeTinyRun(models);
    expect(await run("rollout", join(folder, "config.yaml"))).toBe(0);
    expect(output.stderr).toMatch(/rollout.*12\/12.*reward/);
    expect(output.stdout).toMatch(/12 trajectories of 3 rows/);
    expect(output.stdout).toMatch(/ended by +\w+ \d+/);
    expect(existsSync(join(folder, "cria", "default", "trajectories.jsonl"))).toBe(true);
  });

  it("reports wrong arguments; an interruption keeps finished conversations", async () => {
    const { folder } = await writeTinyRun(models);
    const config = join(folder, "config.yaml");
    expect(await run("rollout", config, "--rows=no")).toBe(1);
    expect(output.stderr).toMatch(/--rows: /);
    expect(await run("rollout", config, "--val")).toBe(1);
    expect(output.stderr).toMatch(/data\.val_files: /);
    let signals = 0;
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      // Some conversations have ended when the bar is drawn. Only once: a second signal would end this process.
      if (/rollout.* \d+\/9000/.test(String(text)) && signals++ === 0) process.emit("SIGINT");
      return true;
    });
    const out = join(work, "interrupted.jsonl");
    const many = ["actor_rollout_ref.rollout.n=3000", "actor_rollout_ref.rollout.max_num_seqs=1"];
    expect(await run("rollout", config, `--out=${out}`, ...many)).toBe(130);
    expect(readFileSync(out, "utf8").trim().split("\n").length).toBeGreaterThan(0);
  });
});

describe("cria check-env", () => {
  let count = 0;
  /** Checks a module that exports the class `It` with the given body. */
  async function check(base: "BaseTool" | "BaseInteraction", body: string, ...more: string[]) {
    const file = join(work, `subject-${count++}.ts`);
    writeFileSync(
      file,
      `import { ${base}, defineToolSchema } from "@cria/tools";
export class It extends ${base} {
  ${base === "BaseTool" && !body.includes("constructor") ? 'constructor() { super(defineToolSchema("it", "Does it.", { type: "object", properties: { key: { type: "string", description: "which" } }, required: ["key"] })); }' : ""}
  ${body}
}
`,
    );
    const { code, result } = await runJson<{ reports: EnvReport[] }>(
      "check-env",
      `${file}#It`,
      "--timeout=0.2",
      ...more,
    );
    const [report] = result.reports;
    return { code, report: report!, told: report!.findings.map((f) => `${f.level} ${f.subject}: ${f.problem}`) };
  }
  const answer = (result: string) => `async execute() { return ${result}; }`;
  const good = answer('{ response: { text: "fine" }, reward: 0, metrics: {} }');

  it("finds no problem in a correct environment, and lists its checks", async () => {
    const { code, report } = await check("BaseTool", good);
    expect(report.findings).toEqual([]);
    expect(code).toBe(0);
    // Twice with valid arguments; the call without arguments is refused before it reaches the tool.
    expect(report).toMatchObject({ kind: "tool", name: "it", conversations: 3, calls: 6 });
    for (const name of ["CalculatorTool", "Gsm8kInteraction"]) {
      const { code, result } = await runJson<{ reports: EnvReport[] }>("check-env", `@cria/tools#${name}`);
      expect(
        result.reports[0]!.findings.filter((f) => f.level === "error"),
        name,
      ).toEqual([]);
      expect(code, name).toBe(0);
    }
  });

  it.each([
    ["throws", 'async execute() { throw new Error("no"); }', /^error execute: throws: no/],
    ["throws before it is asynchronous", 'execute() { throw new Error("no"); }', /^error execute: throws: no/],
    ["hangs", "execute() { return new Promise(() => undefined); }", /^error execute: hangs: no answer within 0.2 s/],
    ["returns nothing", "async execute() {}", /^error execute: returned undefined/],
    ["returns a text that is none", answer("{ response: { text: 3 }, reward: 0 }"), /text is 3, not a string/],
    ["returns a bad reward", answer('{ response: { text: "x" }, reward: NaN }'), /^error execute: reward is NaN/],
    ["returns no reward", answer('{ response: { text: "x" } }'), /^error execute: reward is undefined/],
    ["returns a bad metric", answer('{ response: { text: "x" }, reward: 0, metrics: { a: "b" } }'), /^warning.*"a"/],
    [
      "talks too much",
      answer('{ response: { text: "x".repeat(9999) }, reward: 0 }'),
      /^warning execute: .*more than 2000/,
    ],
    ["says nothing", answer('{ response: { text: "" }, reward: 0 }'), /^warning execute: .*empty/],
    [
      "blocks",
      `async execute() { const before = process.cpuUsage(); while (process.cpuUsage(before).user < 70_000); return { response: { text: "x" }, reward: 0 }; }`,
      /^warning execute: held the event loop/,
    ],
    ["has a bad calcReward", `${good} async calcReward() { return "much"; }`, /^error calcReward: returned "much"/],
    ["cannot be created", `${good} async create() { throw new Error("no room"); }`, /^error create: throws: no room/],
    [
      "never releases",
      `${good} seen = new Map(); async create(id) { this.seen.set(id, 1); return { instanceId: id }; }`,
      /^error release: never releases: .*seen \(3 more\)/,
    ],
    ["cannot be released", `${good} async release() { await new Promise(() => undefined); }`, /^error release: hangs/],
    [
      "leaves timers",
      `${good} async create(id) { setInterval(() => undefined, 1e6).unref; return { instanceId: id }; }`,
      /^warning release: left open: Timeout/,
    ],
    ["has no schema", `constructor() { super({ name: "it" }); } ${good}`, /^error schema: is not/],
    [
      "has a bad name",
      `constructor() { super(defineToolSchema("do it", "x", { type: "object" })); } ${good}`,
      /^error schema: name "do it"/,
    ],
    [
      "requires what it does not have",
      `constructor() { super(defineToolSchema("it", "x", { type: "object", properties: {}, required: ["a"] })); } ${good}`,
      /^error schema: .*required: "a"; expected no names: properties is empty/,
    ],
    [
      "has a mistyped type",
      `constructor() { super(defineToolSchema("it", "x", { type: "object", properties: { n: { type: "numbr" } } })); } ${good}`,
      /^error schema: .*properties\.n\.type: "numbr"; expected .*perhaps "number"/,
    ],
  ])("a tool that %s", async (_, body, message) => {
    const { code, told } = await check("BaseTool", body);
    expect(told.join("\n")).toMatch(new RegExp(message.source, "m"));
    expect(code).toBe(told.some((line) => line.startsWith("error")) ? 1 : 0);
  });

  const interaction = (reply: string, more = "") =>
    `async startInteraction() {} async generateResponse(id, messages) { return ${reply}; } async finalizeInteraction() {} ${more}`;

  it.each([
    ["throws", interaction('(() => { throw new Error("no"); })()'), /^error generateResponse: throws: no/],
    ["hangs", interaction("new Promise(() => undefined)"), /^error generateResponse: hangs/],
    ["returns a tuple", interaction('[true, "x", 1, {}]'), /^error generateResponse: content is undefined/],
    [
      "returns a bad content",
      interaction("{ shouldTerminate: true, content: null, score: 0 }"),
      /content is null, not a string/,
    ],
    [
      "returns a bad score",
      interaction('{ shouldTerminate: true, content: "x", score: Infinity }'),
      /score is Infinity/,
    ],
    [
      "never ends",
      interaction('{ shouldTerminate: false, content: "x", score: 0 }'),
      /^warning.*never ended a conversation of 12/,
    ],
    [
      "talks too much",
      interaction('{ shouldTerminate: true, content: "x".repeat(9999), score: 0 }'),
      /^warning.*more than 2000/,
    ],
    [
      "changes the conversation",
      interaction('(messages.push({ role: "user", content: "" }), { shouldTerminate: true, content: "x", score: 0 })'),
      /^error.*changed the messages/,
    ],
    [
      "has a bad final score",
      interaction('{ shouldTerminate: true, content: "x", score: 0 }', "async calculateScore() {}"),
      /^error calculateScore: returned undefined/,
    ],
    [
      "never finalizes",
      `list = []; async startInteraction(id) { this.list.push(id); } async generateResponse() { return { shouldTerminate: true, content: "x", score: 0 }; } async finalizeInteraction() {}`,
      /^error finalizeInteraction: never releases: .*list \(3 more\)/,
    ],
  ])("an interaction that %s", async (_, body, message) => {
    const { code, told, report } = await check("BaseInteraction", body);
    expect(told.join("\n")).toMatch(new RegExp(message.source, "m"));
    expect(report.kind).toBe("interaction");
    expect(code).toBe(told.some((line) => line.startsWith("error")) ? 1 : 0);
  });

  it("gives a row's kwargs, a call's arguments and the model's answers, and prints for people", async () => {
    const body = `heard = ""; async startInteraction(id, kwargs) { this.heard += kwargs.secret; }
      async generateResponse(id, messages) { const said = messages.at(-1).content; return { shouldTerminate: true, content: "x", score: said === "hello" && this.heard.startsWith("s3") ? 0 : NaN }; }
      async finalizeInteraction() {}`;
    const { told } = await check("BaseInteraction", body, '--kwargs={"secret":"s3"}', '--say=["hello"]');
    expect(told).toEqual([]);
    const picky = `async execute(id, { key }) { if (key !== "open") throw new Error("shut"); return { response: { text: "x" }, reward: 0 }; }`;
    expect((await check("BaseTool", picky, '--args={"key":"open"}')).told).toEqual([]);
    expect((await check("BaseTool", picky, '--args={"key":3}')).told.join()).toMatch(/does not fit/);
    output.stdout = "";
    expect(await run("check-env", "@cria/tools#CalculatorTool")).toBe(0);
    expect(output.stdout).toMatch(/tool .*calculator.*ok.*6 calls in 3 conversations/);
  });

  it("takes a schema of any length", async () => {
    const file = join(work, "long.mjs");
    const description = "x".repeat(20_000);
    writeFileSync(
      file,
      `export class Long {
        schema = { type: "function", function: { name: "long", description: "${description}", parameters: { type: "object", properties: {} } } };
        get name() { return "long"; }
        async create(instanceId) { return { instanceId }; }
        async execute() { return { response: { text: "ok" }, reward: 0 }; }
        async calcReward() { return 0; }
        async release() {}
        async dispose() {}
      }`,
    );
    const { code, result } = await runJson<{ reports: EnvReport[] }>("check-env", `${file}#Long`);
    expect([code, result.reports[0]!.findings]).toEqual([0, []]);
  });

  it("ends, also with an MCP server that runs until it is stopped", () => {
    const server = createRequire(join(import.meta.dirname, "../../../../packages/tools/package.json")).resolve(
      "@modelcontextprotocol/server-everything/dist/index.js",
    );
    const file = join(work, "mcp.yaml");
    const config = { command: process.execPath, args: [server], tools: ["echo"] };
    writeFileSync(file, JSON.stringify({ tools: [{ class_name: "@cria/tools#McpTools", config }] }));
    // The built command line: `npm test` builds first.
    const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");
    const { stdout, signal } = spawnSync(process.execPath, [bin, "check-env", file], {
      encoding: "utf8",
      timeout: 240_000,
    });
    expect(signal).toBeNull();
    expect(stdout).toMatch(/tool echo:/);
  });

  it("takes tools of the AI SDK, in any form; their errors count as answers", async () => {
    const file = join(work, "agent.mjs");
    writeFileSync(
      file,
      `const schema = (properties, required) => ({ jsonSchema: { type: "object", properties, required } });
      const city = { city: { type: "string", description: "Which one." } };
      export const weather = { description: "Tells it.", inputSchema: schema(city, ["city"]), execute: ({ city }) => {
        if (city !== "Bonn") throw new Error("no such city: " + city);
        return "clear";
      } };
      export const clock = { description: "Tells the time.", inputSchema: schema({}), execute: () => "noon" };
      export const tools = { weather, clock };
      export const agent = { tools, generate() {} };
      export const helper = () => { throw new Error("nobody calls it"); };
      export const make = () => ({ schema: { type: "function", function: { name: "made", description: "Made.", parameters: { type: "object" } } },
        name: "made", create: async (instanceId) => ({ instanceId }), execute: async () => ({ response: { text: "x" }, reward: 0 }),
        calcReward: async () => 0, release: async () => {}, dispose: async () => {} });`,
    );
    const check = async (name: string, ...more: string[]) => {
      const { code, result } = await runJson<{ reports: EnvReport[] }>("check-env", `${file}${name}`, ...more);
      return { code, names: result.reports.map((report) => report.name), reports: result.reports };
    };
    const alone = await check("#weather");
    expect([alone.code, alone.names]).toEqual([0, ["weather"]]);
    expect(alone.reports[0]!.findings).toEqual([
      expect.objectContaining({ level: "hint", problem: expect.stringMatching(/refuses .*no such city: example/) }),
    ]);
    expect((await check("#weather", '--args={"city":"Bonn"}')).reports[0]!.findings).toEqual([]);
    for (const name of ["#tools", "#agent", ""]) {
      const { code, names } = await check(name);
      expect([code, names], name).toEqual([0, ["weather", "clock"]]);
    }
    expect(await check("#make")).toMatchObject({ code: 0, names: ["made"] });
    const file2 = join(work, "agent.yaml");
    writeFileSync(file2, JSON.stringify({ tools: [{ class_name: `${file}#tools` }] }));
    const { code } = await runJson("check-env", file2);
    expect(code).toBe(0);
  });

  it("takes MCP servers, by command line, from a file or by export; hints name missing information", async () => {
    const server = join(work, "server.cjs");
    writeFileSync(
      server,
      `const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method } = JSON.parse(line);
        if (method === "initialize")
          answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
        if (method === "tools/list")
          answer(id, { tools: [{ name: "bare", inputSchema: { type: "object", properties: { a: { type: "string" } } } }] });
        if (method === "tools/call")
          console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32602, message: "a must be a date" } }));
      });`,
    );
    const servers = join(work, "servers.json");
    writeFileSync(servers, JSON.stringify({ mcpServers: { x: { command: process.execPath, args: [server] } } }));
    const module = join(work, "exported-server.ts");
    const config = JSON.stringify({ command: process.execPath, args: [server] });
    writeFileSync(module, `import { mcpServer } from "cria";\nexport const server = mcpServer(${config});\n`);
    for (const subject of [`${process.execPath} ${server}`, servers, module]) {
      const { code, result } = await runJson<{ reports: EnvReport[] }>("check-env", subject);
      expect([code, result.reports.map((report) => report.name)]).toEqual([0, ["bare"]]);
      const { findings } = result.reports[0]!;
      expect(findings.map(({ level, problem }) => `${level}: ${problem}`)).toEqual([
        "hint: has no description; only the server's author can repair it",
        'hint: parameter "a" has no description; only the server\'s author can repair it',
        expect.stringMatching(/^hint: refuses the scripted model's arguments: [\s\S]*a must be a date/),
      ]);
    }
    output.stdout = "";
    await run("check-env", servers);
    expect(output.stdout).toMatch(/ok.*\n {2}hint .*no description/);
  });

  it("ends, also when a tool leaves a timer", () => {
    const file = join(work, "ticking.mjs");
    writeFileSync(
      file,
      `setInterval(() => {}, 1000);
      export const clock = { description: "Ticks.", inputSchema: { jsonSchema: { type: "object" } }, execute: () => "tick" };`,
    );
    const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");
    const { stdout, signal } = spawnSync(process.execPath, [bin, "check-env", file], {
      encoding: "utf8",
      timeout: 240_000,
    });
    expect(signal).toBeNull();
    expect(stdout).toMatch(/tool clock: ok/);
  });

  it("names a module that it cannot load", async () => {
    for (const [args, message] of [
      [["none.ts#X"], /none\.ts/],
      [[join(work, "subject-0.ts#Other")], /subject-0\.ts#Other: [\s\S]*It/],
      [["none.yaml"], /none\.yaml: /],
      [["x.ts", "--timeout=soon"], /--timeout/],
      [["x.ts", "--say=hello"], /--say: /],
    ] as const) {
      output.stderr = "";
      expect(await run("check-env", ...args)).toBe(1);
      expect(output.stderr).toMatch(message);
    }
  });
});

describe("cria init", () => {
  const folder = join(work, "my-env");

  it("makes an environment that runs at once on the embedded policy", async () => {
    const { code, result } = await runJson<{ files: string[]; remarks: string[] }>("init", folder);
    expect(code).toBe(0);
    expect(result.remarks.join()).toMatch(/half a million parameters.*--model/);
    for (const file of result.files) expect(existsSync(join(folder, file)), file).toBe(true);
    for (const file of ["tools.yaml", "interaction.yaml"]) {
      const { code, result } = await runJson<{ reports: EnvReport[] }>("check-env", join(folder, file));
      expect([code, result.reports[0]!.findings], file).toEqual([0, []]);
    }
    const out = join(work, "env.jsonl");
    const args = ["--rows=8", `--out=${out}`, "trainer.threads=1", "actor_rollout_ref.rollout.n=4"];
    const { code: rolled, result: summary } = await runJson<RolloutSummary>(
      "rollout",
      join(folder, "config.yaml"),
      ...args,
    );
    expect(output.stderr).toBe("");
    expect(rolled).toBe(0);
    expect(summary).toMatchObject({ trajectories: 32, failed: 0, by_data_source: { "my-env": { count: 32 } } });
    expect(summary.metrics.tool_calls).toBeGreaterThan(4);
    expect(summary.metrics.interaction_turns).toBeGreaterThan(4);
    // There is room to learn, and some success to learn from.
    expect(summary.reward!.mean).toBeGreaterThan(0.05);
    expect(summary.reward!.mean).toBeLessThan(0.95);
    expect(summary.metrics.tokenization_mismatch).toBeUndefined();
  });

  it("overwrites nothing, and refuses a name that cannot be a data source", async () => {
    expect(await run("init", folder)).toBe(1);
    expect(output.stderr).toMatch(/my-env: /);
    expect(await run("init", join(work, "my env!"))).toBe(1);
    expect(output.stderr).toMatch(/my env!/);
    expect(existsSync(join(work, "my env!"))).toBe(false);
  });
});
