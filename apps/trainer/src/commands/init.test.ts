import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GgufValue, writeGguf } from "@cria/engine";
import { describeTinyModel } from "@cria/engine/testing";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { loadConfig, trainConfigSchema } from "@cria/trainer";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import { embeddedPolicy, embeddedProjector } from "../assets/embedded-policy.js";
import type { Scaffold } from "../init/scaffold-environment.js";
import type { RolloutSummary } from "../rollout/summarize-rollouts.js";
import { captureOutput } from "../testing/capture-output.js";
import { checkEnvCommand } from "./check-env.js";
import { initCommand } from "./init.js";
import { rolloutCommand } from "./rollout.js";

const work = mkdtempSync(join(tmpdir(), "cria-init-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const output = captureOutput();
const fromTools = createRequire(join(import.meta.dirname, "../../../../packages/tools/package.json"));
const everything = fromTools.resolve("@modelcontextprotocol/server-everything/dist/index.js");

const commands = { init: initCommand, rollout: rolloutCommand, "check-env": checkEnvCommand };

async function run(name: keyof typeof commands, ...rawArgs: string[]): Promise<number> {
  process.exitCode = undefined;
  await runCitty(commands[name] as typeof initCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

async function runJson<T>(name: keyof typeof commands, ...rawArgs: string[]): Promise<T> {
  output.stdout = "";
  const code = await run(name, ...rawArgs, "--json");
  expect(code, output.stderr).toBe(0);
  return JSON.parse(output.stdout) as T;
}

/** The refusal of a task that cannot be made; nothing is written then. */
async function refuse(name: string, ...rawArgs: string[]): Promise<string> {
  output.stderr = "";
  expect(await run("init", join(work, name), ...rawArgs)).toBe(1);
  expect(existsSync(join(work, name))).toBe(false);
  return output.stderr;
}

const read = (...path: string[]) => readFileSync(join(work, ...path), "utf8");
const readConfig = (name: string) => loadConfig(trainConfigSchema, join(work, name, "config.yaml")).values;

/** Two conversations of each of some rows; none may break. */
async function rollOut(name: string): Promise<RolloutSummary> {
  const out = `--out=${join(work, `${name}.jsonl`)}`;
  const settings = [
    "trainer.threads=1",
    "actor_rollout_ref.rollout.n=2",
    "actor_rollout_ref.rollout.response_length=64",
  ];
  const config = join(work, name, "config.yaml");
  const summary = await runJson<RolloutSummary>("rollout", config, "--rows=3", out, ...settings);
  expect(summary).toMatchObject({ trajectories: 6, failed: 0 });
  return summary;
}

describe("cria init", () => {
  it("brings the policy along, and files for an editor and npm", async () => {
    const { files } = await runJson<Scaffold>("init", join(work, "plain"));
    for (const file of files) expect(existsSync(join(work, "plain", file)), file).toBe(true);
    const { path } = readConfig("plain").actor_rollout_ref.model;
    expect(readFileSync(join(work, "plain", path)).equals(readFileSync(embeddedPolicy))).toBe(true);
    const { version, dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
    const manifest = JSON.parse(read("plain", "package.json"));
    expect(manifest.dependencies).toEqual({ cria: `^${version}`, zod: dependencies.zod });
    expect(Object.keys(manifest.devDependencies)).toEqual(["@types/node", "typescript"]);
    // The package's dependencies equal the sources' imports.
    const imports = (file: string) => [...read("plain", file).matchAll(/from "([^"]+)"/g)].map((match) => match[1]!);
    expect(imports("tool.ts").toSorted()).toEqual(Object.keys(manifest.dependencies));
    expect(imports("interaction.ts")).toEqual(["cria"]);
    expect(JSON.parse(read("plain", "tsconfig.json")).compilerOptions.strict).toBe(true);
  });

  it("prints the next commands, and asks nothing without a terminal", async () => {
    const before = process.cwd();
    mkdirSync(join(work, "empty"));
    process.chdir(join(work, "empty"));
    try {
      expect(await run("init")).toBe(0);
    } finally {
      process.chdir(before);
    }
    expect(existsSync(join(work, "empty", "my-task", "config.yaml"))).toBe(true);
    for (const step of ["cd my-task", "npm install", "npm run check", "npm run train"])
      expect(output.stdout).toContain(`\n  ${step}`);
  });

  it("refuses options that do not go together", async () => {
    expect(await refuse("both", "--from-mcp=x", "--from-ai-sdk=y")).toMatch(/--from-mcp and --from-ai-sdk: /);
    expect(await refuse("tools", "--tools=a")).toMatch(/--tools: .*--from-mcp/s);
  });
});

describe("cria init --model", () => {
  const writeModel = async (name: string, template: string | null, contextLength: number, architecture?: string) => {
    const file = describeTinyModel({ architecture: "qwen3", contextLength });
    const text = (value: string): GgufValue => ({ type: "string", value });
    if (template !== null) file.metadata["tokenizer.chat_template"] = text(template);
    else delete file.metadata["tokenizer.chat_template"];
    if (architecture) file.metadata["general.architecture"] = text(architecture);
    await writeGguf(join(work, name), file);
    return join(work, name);
  };

  it("fits lengths, tool format and thinking to the model, which stays where it is", async () => {
    const model = await writeModel("qwen3.gguf", readBundledTemplate("Qwen-Qwen3-0.6B"), 4096);
    await runJson("init", join(work, "fitted"), `--model=${model}`);
    const { actor_rollout_ref: fitted, data } = readConfig("fitted");
    expect(fitted.model.path).toBe("../qwen3.gguf");
    expect(existsSync(join(work, "fitted", "models"))).toBe(false);
    expect(fitted.rollout.multi_turn.format).toBe("hermes");
    expect(data.apply_chat_template_kwargs).toEqual({ enable_thinking: false });
    // Also when the path is changed to a model with other layers.
    expect(fitted.model.target_modules).toBe("all-linear");
    // Here each byte is a token: the template's words about tools are some hundreds.
    expect(data.max_prompt_length).toBeGreaterThan(700);
    expect(data.max_prompt_length + data.max_response_length).toBeLessThanOrEqual(4096);
    expect(fitted.rollout.response_length).toBe(1024);
    await rollOut("fitted");
  });

  it.each([
    ["llama3_json", "meta-llama-Llama-3.2-3B-Instruct"],
    ["qwen3_coder", "Qwen3-Coder"],
  ])("finds %s", async (format, template) => {
    const model = await writeModel(`${format}.gguf`, readBundledTemplate(template), 8192);
    await runJson("init", join(work, format), `--model=${model}`);
    expect(readConfig(format).actor_rollout_ref.rollout.multi_turn.format).toBe(format);
  });

  it("names a model's missing part before anything is written", async () => {
    expect(await refuse("none", "--model=none.gguf")).toMatch(/--model: [\s\S]*none\.gguf/);
    writeFileSync(join(work, "text.gguf"), "hello");
    expect(await refuse("text", `--model=${join(work, "text.gguf")}`)).toMatch(/text\.gguf[\s\S]*"GGUF"/);
    const bare = await writeModel("bare.gguf", null, 512);
    expect(await refuse("bare", `--model=${bare}`)).toMatch(/tokenizer\.chat_template/);
    const gemma = await writeModel("gemma.gguf", readBundledTemplate("google-gemma-2-2b-it"), 512);
    expect(await refuse("gemma", `--model=${gemma}`)).toMatch(/gemma[\s\S]*chat template/);
    const other = await writeModel("mamba.gguf", "{{ messages }}", 512, "mamba");
    expect(await refuse("mamba", `--model=${other}`)).toMatch(/llama, qwen2, qwen3[\s\S]*mamba/);
    const mixture = join(work, "mixtral.gguf");
    await writeGguf(mixture, describeTinyModel({ architecture: "llama", experts: { count: 4, used: 2 } }));
    expect(await refuse("mixtral", `--model=${mixture}`)).toMatch(/mixture of experts/);
    expect(existsSync(join(work, "mixtral"))).toBe(false);
    const small = await writeModel("small.gguf", readBundledTemplate("Qwen-Qwen3-0.6B"), 512);
    expect(await refuse("small", `--model=${small}`)).toMatch(/\bits context has 512\b/);
  });
});

describe("cria init --vision", () => {
  it("writes a task of pictures, with a tool that zooms, that runs on the embedded policy's projector", async () => {
    const { files, remarks } = await runJson<Scaffold>("init", join(work, "sight"), "--vision");
    for (const file of files) expect(existsSync(join(work, "sight", file)), file).toBe(true);
    expect(remarks.join("\n")).toMatch(/projector[\s\S]*--mmproj/);
    const { model, rollout } = readConfig("sight").actor_rollout_ref;
    expect([model.path, model.mmproj]).toEqual(["models/cria-tiny.gguf", "models/cria-tiny-vision.mmproj.gguf"]);
    expect(rollout.multi_turn.tool_config_path).toBe("tools.yaml");
    const { reports } = await runJson<{ reports: { name: string; calls: number }[] }>(
      "check-env",
      join(work, "sight", "tools.yaml"),
    );
    expect(reports).toMatchObject([{ name: "image_zoom_in_tool", calls: 6 }]);
    await rollOut("sight");
    const [line] = read("sight.jsonl").split("\n");
    const { images, messages } = JSON.parse(line!);
    expect(images[0]).toMatchObject({ width: 120, height: 120, length: 16 });
    expect(existsSync(join(work, "images", `${images[0].hash}.png`))).toBe(true);
    expect(messages[1].content[0]).toMatchObject({ type: "image", image: { hash: images[0].hash } });
  });

  it("takes a model and its projector together, and refuses another source beside them", async () => {
    expect(await refuse("v1", "--vision", "--model=m.gguf")).toMatch(/--model and --mmproj: /);
    expect(await refuse("v2", "--mmproj=p.gguf", "--model=m.gguf")).toMatch(/--mmproj: /);
    expect(await refuse("v3", "--vision", "--from-mcp=x")).toMatch(/--vision and --from-mcp: /);
    const given = [`--model=${embeddedPolicy}`, `--mmproj=${embeddedProjector}`];
    await runJson("init", join(work, "seen"), "--vision", ...given);
    const { model } = readConfig("seen").actor_rollout_ref;
    expect([model.path, model.mmproj].map((path) => path!.split("/").at(-1))).toEqual([
      "cria-tiny.gguf",
      "cria-tiny-vision.mmproj.gguf",
    ]);
    expect(existsSync(join(work, "seen", "models"))).toBe(false);
  });
});

describe("cria init --from-mcp", () => {
  /** A hand-written server, which starts faster than one of the SDK. */
  const writeServer = (name: string, tools: object[]) => {
    writeFileSync(
      join(work, name),
      `import { createInterface } from "node:readline";
if (process.env.BROKEN) { console.error("the key is missing"); process.exit(3); }
const answers = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "probe", version: "1" } }),
  "tools/list": () => ({ tools: ${JSON.stringify(tools)} }),
  "tools/call": () => ({ content: [{ type: "text", text: "done" }] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }));
}
`,
    );
    return `"${process.execPath}" ${join(work, name)}`;
  };
  const inputSchema = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
  const look = { name: "look", description: "Looks.", inputSchema };
  const wipe = { name: "wipe", description: "Wipes.", inputSchema, annotations: { destructiveHint: true } };

  it("writes a task of the server's tools, with rows, a reward and types, that runs", async () => {
    await runJson("init", join(work, "mcp"), `--from-mcp=${process.execPath} ${everything}`, "--tools=echo,get-sum");
    const { tools } = parseYaml(read("mcp", "tools.yaml"));
    expect(tools).toEqual([
      {
        class_name: "@cria/tools#McpTools",
        config: { command: process.execPath, args: [everything], cwd: expect.any(String), tools: ["echo", "get-sum"] },
      },
    ]);
    const rows = read("mcp", "data", "train.jsonl")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.slice(0, 2).map((row) => row.reward_model.ground_truth)).toEqual(["echo", "get-sum"]);
    expect(rows[0].prompt.at(-1).content).toContain('{"message":"example"}');
    expect(read("mcp", "reward.ts")).toContain("FILL IN");
    await rollOut("mcp");
  });

  it("leaves out tools that call themselves destructive, unless they are named", async () => {
    const server = writeServer("two.mjs", [look, wipe]);
    await runJson("init", join(work, "careful"), `--from-mcp=${server}`);
    expect(parseYaml(read("careful", "tools.yaml")).tools[0].config.tools).toEqual(["look"]);
    expect(read("careful", "tools.yaml")).toMatch(/# Left out, .*destructive: wipe/);
    await runJson("init", join(work, "careless"), `--from-mcp=${server}`, "--tools=wipe");
    expect(parseYaml(read("careless", "tools.yaml")).tools[0].config.tools).toEqual(["wipe"]);
  });

  it("starts the server in the folder of its first start, with its environment", async () => {
    const before = process.cwd();
    writeServer("here.mjs", [look]);
    process.chdir(work);
    try {
      await runJson("init", "placed", `--from-mcp=WORD='a b' "${process.execPath}" ./here.mjs`);
    } finally {
      process.chdir(before);
    }
    const [{ config }] = parseYaml(read("placed", "tools.yaml")).tools;
    expect(config).toMatchObject({ args: ["./here.mjs"], cwd: "..", env: { WORD: "a b" } });
    const { reports } = await runJson<{ reports: { name: string }[] }>("check-env", join(work, "placed", "tools.yaml"));
    expect(reports.map(({ name }) => name)).toEqual(["look"]);
  });

  it("says what is wrong with a server, in one message", async () => {
    const server = writeServer("probe.mjs", [look, wipe]);
    expect(await refuse("m1", "--from-mcp=no-such-program-7f3a")).toMatch(
      /MCP server "no-such-program-7f3a": [\s\S]*ENOENT/,
    );
    expect(await refuse("m2", `--from-mcp=BROKEN=1 ${server}`)).toMatch(/MCP server [\s\S]*the key is missing/);
    expect(await refuse("m3", `--from-mcp=${server}`, "--tools=fly")).toMatch(/\bfly\b[\s\S]*look, wipe/);
    const none = writeServer("none.mjs", []);
    expect(await refuse("m4", `--from-mcp=${none}`)).toMatch(/none\.mjs[\s\S]*an empty list/);
    const wiping = writeServer("wipe.mjs", [wipe]);
    expect(await refuse("m5", `--from-mcp=${wiping}`)).toMatch(/wipe[\s\S]*--tools/);
    expect(await refuse("m6", "--from-mcp= ")).toMatch(/--from-mcp: /);
    const talks = writeServer("talks.mjs", [{ ...look, description: "Looks. ".repeat(200) }]);
    const model = join(work, "narrow.gguf");
    const file = describeTinyModel({ contextLength: 1024 });
    file.metadata["tokenizer.chat_template"] = { type: "string", value: readBundledTemplate("Qwen-Qwen3-0.6B") };
    await writeGguf(model, file);
    expect(await refuse("m7", `--from-mcp=${talks}`, `--model=${model}`)).toMatch(/\b1024\b[\s\S]*--tools a,b/);
  });
});

describe("cria init --from-ai-sdk", () => {
  const write = (name: string, text: string) => {
    const path = join(work, name);
    writeFileSync(
      path,
      `import { tool, ToolLoopAgent } from ${JSON.stringify(fromTools.resolve("ai").replace(/\.js$/, ".mjs"))};
import { z } from "zod";
${text}`,
    );
    return path;
  };
  const convert =
    'tool({ description: "Converts.", inputSchema: z.object({ km: z.number() }), execute: ({ km }) => ({ miles: km * 0.62 }) })';

  it("uses tools by path: single ones, records, and an agent's; each once, and only those that can run", async () => {
    const agent = write(
      "agent.ts",
      `export const convert = ${convert};
export const tools = { convert, weather: ${convert} };
export const agent = new ToolLoopAgent({ model: "none" as never, tools: { convert, time: ${convert}, ask: tool({ inputSchema: z.object({}) }) } });
export const other = 5;`,
    );
    await runJson("init", join(work, "sdk"), `--from-ai-sdk=${agent}`);
    expect(parseYaml(read("sdk", "tools.yaml")).tools).toEqual([
      { class_name: expect.stringMatching(/^\.\.\/agent\.ts#agent$/), config: { tools: ["convert", "time"] } },
      { class_name: "../agent.ts#tools", config: { tools: ["weather"] } },
    ]);
    expect(read("sdk", "tools.yaml")).toMatch(/# Left out, .*no execute function: ask/);
    await rollOut("sdk");
    await runJson("init", join(work, "sdk-one"), `--from-ai-sdk=${agent}#convert`);
    expect(parseYaml(read("sdk-one", "tools.yaml")).tools).toEqual([{ class_name: "../agent.ts#convert" }]);
  });

  it("says what is wrong with a module, in one message", async () => {
    expect(await refuse("a1", "--from-ai-sdk=./none-7f3a.ts")).toMatch(/--from-ai-sdk: [\s\S]*none-7f3a\.ts/);
    const throws = write("throws.ts", 'throw new Error("no key today");');
    expect(await refuse("a2", `--from-ai-sdk=${throws}`)).toMatch(/throws\.ts[\s\S]*no key today/);
    const none = write("none.ts", "export const x = 1;");
    expect(await refuse("a3", `--from-ai-sdk=${none}`)).toMatch(/none\.ts[\s\S]*exports x/);
    const idle = write("idle.ts", "export const ask = tool({ inputSchema: z.object({}) });");
    expect(await refuse("a4", `--from-ai-sdk=${idle}`)).toMatch(/idle\.ts[\s\S]*received: ask\b/);
    expect(await refuse("a5", `--from-ai-sdk=${idle}`, "--tools=fly")).toMatch(/\bfly\b/);
  });
});
