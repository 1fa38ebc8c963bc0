import { describe, expect, it } from "vitest";
import * as cria from "./index.js";
import * as cluster from "./subpaths/cluster.js";
import * as config from "./subpaths/config.js";
import * as serve from "./subpaths/serve.js";
import * as testing from "./subpaths/testing.js";

/** Values that no type has, as programs in JavaScript give them. */
const loose = (value?: unknown) => value as never;
const missing = "/no/such/file";

/** Calls of exported functions, each with options of which one is misspelt; the right name. */
const misspelt: Record<string, [call: () => unknown, option: string]> = {
  "createCria: adaptor": [() => cria.createCria(loose({ model: missing, adaptor: missing })), "adapter"],
  "defineEstimator: comparesGroups": [() => cria.defineEstimator(loose({ comparesGroups: true })), "comparesGroup"],
  "defineTask: sytem": [() => cria.defineTask(loose({ sytem: "" })), "system"],
  "interaction: repli": [() => cria.interaction(loose({ repli: () => "" })), "reply"],
  "loadDataset: promptkey": [() => cria.loadDataset([missing], loose({ promptkey: "question" })), "promptKey"],
  "loadImage: maxpixels": [() => cria.loadImage({ bytes: new Uint8Array() }, loose({ maxpixels: 1 })), "maxPixels"],
  "loadPolicy: contextsize": [() => cria.loadPolicy(missing, loose({ contextsize: 100 })), "contextSize"],
  "loadTeacher: sample": [() => cria.loadTeacher(missing, loose(), loose({ sample: true })), "samples"],
  "makeBatch: temprature": [() => cria.makeBatch([], loose({ temprature: 1 })), "temperature"],
  "mcpServer: prefixes": [() => cria.mcpServer({ command: missing }, loose({ prefixes: "a" })), "prefix"],
  "openReplay: trian": [() => cria.openReplay(missing, loose({ trian: {} })), "train"],
  "openTraining: valrows": [() => cria.openTraining(loose(), missing, loose({ valrows: [] })), "valRows"],
  "rollOut: temprature": [async () => cria.rollOut(loose({}), loose(), [], loose({ temprature: 0 })), "temperature"],
  "runDemo: step": [() => cria.runDemo(loose({ step: 1 })), "steps"],
  "runSft: tracker": [() => cria.runSft(loose(), missing, loose({ tracker: [] })), "trackers"],
  "runTraining: afterstep": [() => cria.runTraining(loose(), loose({ afterstep: () => {} })), "afterStep"],
  "tool: inputschema": [() => cria.tool(loose({ inputschema: {} })), "inputSchema"],
  "train: step": [() => cria.train(loose({ step: 1 })), "steps"],
  "openLocalBus: hubs": [() => cluster.openLocalBus(loose({ hubs: null })), "hub"],
  "openNatsBus: server": [() => cluster.openNatsBus(loose({ server: "nats://localhost" })), "servers"],
  "openNatsBus: times.leaseMS": [() => cluster.openNatsBus(loose({ times: { leaseMS: 1 } })), "times.leaseMs"],
  "openNatsBus: bounds.hour": [() => cluster.openNatsBus(loose({ bounds: { hour: 1 } })), "bounds.hours"],
  "startWorker: slot": [() => cluster.startWorker(loose(), loose({ slot: 1 })), "slots"],
  "train: learningrate": [() => config.toConfig(loose({ learningrate: 1 })), "learningRate"],
  "playTask: rows": [() => testing.playTask(loose(), [], loose({ rows: 1 })), "row"],
};

/** Exported functions without options; some take another object: a config, settings, parts of a step. */
const without = [
  ["callTool", "contentText", "countSteps", "createFetch", "cropPicture", "defineToolSchema", "diagnoseRun"],
  ["encodePng", "findCheckpoint", "findLastAnswer", "fromConfig", "languageModel", "listImages", "loadConfig"],
  ["loadToolConfig", "openRun", "openTools", "runTrainingStep", "scalePicture"],
].flat();

describe("misspelt options are refused", () => {
  it.each(Object.entries(misspelt))("%s", async (subject, [call, option]) => {
    const failure = await (async () => call())().catch((error: unknown) => error);
    const expected = `perhaps "${option}"`;
    expect(failure).toMatchObject({ code: "config/unknown-key", subject, expected });
  });

  it("by each exported function that takes options", () => {
    const isFunction = (value: unknown) => typeof value === "function" && !/^class\b/.test(String(value));
    const exported = [cria, cluster, config, serve, testing].flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) => (isFunction(value) ? name : [])),
    );
    const checked = Object.keys(misspelt).map((subject) => subject.split(":", 1)[0]!);
    // Their options are those of train and of rollOut.
    checked.push("toConfig", "validate");
    expect([...new Set([...checked, ...without])].sort()).toEqual([...new Set(exported)].sort());
  });
});
