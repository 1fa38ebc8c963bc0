import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type ChatMessage, ConfigError, writeFileAtomically } from "@cria/core";
import { guardWrite } from "@cria/core/internal";
import { isAddress } from "@cria/hub/internal";
import { loadMessages, placeImages } from "@cria/rollout/internal";
import { checkArgument } from "@cria/trainer/internal";
import { embeddedPolicy, embeddedProjector } from "../assets/embedded-policy.js";
import { version } from "../assets/version.js";
import { fitConfig, type ModelFit } from "./fit-config.js";
import { nameSchemas } from "./name-schemas.js";
import { type ReadModel, readModel } from "./read-model.js";
import { showPath } from "./show-path.js";
import { makeTaskParts, type TaskParts, type TaskSource } from "./task-parts.js";
import { makeConfig } from "./templates/config.js";
import { gitignoreTemplate, makePackage, makeTest, tsconfigTemplate } from "./templates/package-files.js";

export interface ScaffoldOptions extends Partial<TaskSource> {
  /** A GGUF, from the working directory; default: the embedded policy, which is copied into the environment. */
  model?: string;
  /** The model's projector, likewise, for tasks with pictures. Default: the embedded policy's, which is copied too. */
  mmproj?: string;
}

export interface Scaffold {
  /** Name of the environment: its data source and its interaction. */
  name: string;
  folder: string;
  files: string[];
  /** Remarks about the model for the user, one sentence each. */
  remarks: string[];
}

/** Remark when the embedded policy is used for the template's task. */
const TOY =
  "The embedded policy has half a million parameters and learns word problems like these; for other tasks use your own model: --model.";

/** Path of the embedded policy's copy in an environment. */
const POLICY = "models/cria-tiny.gguf";
const PROJECTOR = "models/cria-tiny-vision.mmproj.gguf";

/**
 * Writes a new environment that runs at once: on the embedded policy or fitted to a model, with a template tool or the
 * tools of an MCP server or of an AI SDK module.
 * @throws ConfigError when the folder is not empty, or its name cannot be a data source; EngineError, ConfigError or
 * ToolError when model or tools cannot be used; DataError when it cannot be written. Nothing is written then.
 */
export async function scaffoldEnvironment(folder: string, options: ScaffoldOptions = {}): Promise<Scaffold> {
  const target = resolve(folder);
  const name = readName(target);
  await checkEmpty(target, folder);
  const parts = await makeTaskParts(name, target, { ...options, tools: options.tools ?? null });
  const isTemplate = options.fromMcp === undefined && options.fromAiSdk === undefined && !options.vision;
  const isEmbedded = options.model === undefined;
  const usesDefaults = isEmbedded && isTemplate;
  const projector = options.vision ? await findProjector(options.mmproj) : null;
  const model = usesDefaults ? null : await measure(options.model ?? embeddedPolicy, parts, projector);
  const fit = model ? fitConfig(model) : embeddedFit;
  const remarks = model ? listRemarks(model, fit, { isEmbedded, vision: options.vision }) : [TOY];
  const modelPath = isEmbedded ? POLICY : showModel(model!, target);
  const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const files: Record<string, string> = {
    ...parts.files,
    "config.yaml": makeConfig({
      name,
      modelPath,
      mmproj: projector && (isEmbedded ? PROJECTOR : showFile(projector, target)),
      fit,
      remarks,
      judge: parts.judge,
    }),
    "data/train.jsonl": lines(parts.train),
    "data/val.jsonl": lines(parts.val),
    "environment.test.mjs": makeTest(parts.checked, usesDefaults),
    "package.json": makePackage(name, parts.checked, version),
    "tsconfig.json": tsconfigTemplate,
    ".gitignore": gitignoreTemplate,
  };
  for (const [file, text] of Object.entries(nameSchemas(files, target)))
    await write(join(target, file), (path) => writeFileAtomically(path, text));
  for (const [file, bytes] of Object.entries(parts.pictures ?? {}))
    await write(join(target, "data", file), (path) => writeFileAtomically(path, bytes));
  const copies: Record<string, string> = isEmbedded
    ? { [POLICY]: embeddedPolicy, ...(projector ? { [PROJECTOR]: projector } : {}) }
    : {};
  for (const [file, source] of Object.entries(copies))
    await write(join(target, file), (path) => copyFile(source, path));
  const pictures = parts.pictures ? ["data/images"] : [];
  return { name, folder: target, files: [...Object.keys(files), ...pictures, ...Object.keys(copies)], remarks };
}

/** An absolute path, or an address. */
async function findProjector(mmproj: string | undefined): Promise<string> {
  return mmproj === undefined ? embeddedProjector : checkArgument("--mmproj", mmproj);
}

/** Fitting values for the embedded policy: its own prompts, and short answers. */
const embeddedFit: ModelFit = {
  promptLength: 120,
  responseLength: 160,
  toolResponseLength: 40,
  maxNumSeqs: 64,
  learningRate: 1.5e-3,
  format: "hermes",
  templateKwargs: {},
};

async function measure(address: string, parts: TaskParts, projector: string | null): Promise<ReadModel> {
  const { train, val, schemas, pictures = {} } = parts;
  const prompts = [...train, ...val].map((row) => {
    const images = (row["images"] ?? []) as { path: string }[];
    const sources = images.map(({ path }) => ({ bytes: pictures[path]! }));
    return loadMessages(placeImages(row["prompt"] as ChatMessage[], sources, "images"), {});
  });
  const loaded = (await Promise.all(prompts)).map((prompt) => [...prompt]);
  return readModel(address, loaded, schemas, projector ?? undefined);
}

function listRemarks(
  { name, shape, ...model }: ReadModel,
  fit: ModelFit,
  { isEmbedded, vision = false }: { isEmbedded: boolean; vision?: boolean },
): string[] {
  const remarks = [
    `For ${name}: ${shape.architecture}, trained with ${shape.contextLength} tokens; the longest prompt has ${model.promptTokens}.`,
  ];
  if (isEmbedded && vision)
    remarks.push(
      "The embedded policy never learned to see, and its projector is random: it only shows that everything runs. Your own model that sees: --model and --mmproj.",
    );
  else if (isEmbedded)
    remarks.push(
      "The embedded policy only shows that everything runs; to learn these tools use your own model: --model.",
    );
  if (model.format === null)
    remarks.push(
      `No built-in parser reads the calls that its chat template prints: name your own, as ./parser.ts#parse, instead of ${fit.format}.`,
    );
  if (!model.listsTools)
    remarks.push(
      "Its chat template does not list the tools for the model: describe them in the rows' system messages.",
    );
  return remarks;
}

function showModel({ path }: ReadModel, target: string): string {
  return showFile(path, target);
}

function showFile(path: string, target: string): string {
  return isAddress(path) ? path : showPath(target, path);
}

async function checkEmpty(target: string, folder: string): Promise<void> {
  if (!existsSync(target) || (await readdir(target)).length === 0) return;
  throw new ConfigError("is not empty", {
    code: "config/folder-not-empty",
    subject: folder,
    expected: "a new or empty folder",
    received: "a folder with files in it",
    remedy: "choose another name: nothing is overwritten",
  });
}

async function write(path: string, make: (path: string) => Promise<unknown>): Promise<void> {
  await guardWrite(path, async () => {
    await mkdir(dirname(path), { recursive: true });
    await make(path);
  });
}

function readName(folder: string): string {
  const name = basename(folder).toLowerCase();
  if (/^[a-z0-9][a-z0-9_-]*$/.test(name)) return name;
  throw new ConfigError("cannot be the name of an environment", {
    code: "config/bad-argument",
    subject: basename(folder),
    expected: "letters, digits, - and _, the first a letter or digit",
    received: JSON.stringify(basename(folder)),
    remedy: "choose another folder name",
  });
}
