import type { ToolSchema } from "@cria/core";
import { ImageZoomTool } from "@cria/tools";
import { readAiSdkTools } from "./from-ai-sdk.js";
import { readMcpTools } from "./from-mcp.js";
import { makeRows } from "./make-rows.js";
import { makeToolRows } from "./make-tool-rows.js";
import { makeVisionRows } from "./make-vision-rows.js";
import { makeInteractionsFile, toolsTemplate } from "./templates/config.js";
import { interactionTemplate } from "./templates/interaction.js";
import { makeTemplateReadme, makeToolsReadme, makeVisionReadme } from "./templates/readme.js";
import { rewardTemplate } from "./templates/reward.js";
import { templateSchema, toolTemplate } from "./templates/tool.js";
import { visionRewardTemplate, visionToolsTemplate } from "./templates/vision.js";
import type { ToolSource } from "./tool-source.js";

type Row = ReturnType<typeof makeRows>[number];

/** The parts of a task, without its model. */
export interface TaskParts {
  /** Text of files, by name. */
  files: Record<string, string>;
  train: Row[];
  val: Row[];
  schemas: readonly ToolSchema[];
  /** The judge: interaction.yaml, or reward.ts. */
  judge: "interaction" | "reward";
  /** Files that `npm run check` checks. */
  checked: readonly string[];
  /** PNG files of the rows, by their paths from data/. */
  pictures?: Record<string, Uint8Array>;
}

export interface TaskSource {
  /** A command line or URL of an MCP server. */
  fromMcp?: string;
  /** A module that exports tools of the AI SDK. */
  fromAiSdk?: string;
  /** Names of the tools to take; null: all. */
  tools: readonly string[] | null;
  /** True if the task is about pictures. */
  vision?: boolean;
}

/** @throws ConfigError or ToolError when the tools are unavailable. */
export async function makeTaskParts(name: string, folder: string, source: TaskSource): Promise<TaskParts> {
  if (source.fromMcp !== undefined) return wrapTools(name, await readMcpTools(source.fromMcp, folder, source.tools));
  if (source.fromAiSdk !== undefined)
    return wrapTools(name, await readAiSdkTools(source.fromAiSdk, folder, source.tools));
  return source.vision ? makeVisionTemplate(name) : makeTemplate(name);
}

/** Pictures, a tool that zooms into them, and a reward. */
function makeVisionTemplate(name: string): TaskParts {
  const [train, val] = [makeVisionRows(name, 64, "train"), makeVisionRows(name, 16, "val")];
  return {
    files: {
      "README.md": makeVisionReadme(name),
      "tools.yaml": visionToolsTemplate,
      "reward.ts": visionRewardTemplate,
    },
    train: train.rows,
    val: val.rows,
    schemas: [new ImageZoomTool().schema],
    judge: "reward",
    checked: ["tools.yaml"],
    pictures: { ...train.pictures, ...val.pictures },
  };
}

/** A task that the embedded policy can learn: word problems, a calculator, and an interaction that names mistakes. */
function makeTemplate(name: string): TaskParts {
  return {
    files: {
      "README.md": makeTemplateReadme(name),
      "tool.ts": toolTemplate,
      "tools.yaml": toolsTemplate,
      "interaction.ts": interactionTemplate,
      "interaction.yaml": makeInteractionsFile(name),
    },
    train: makeRows(name, 256, "train"),
    val: makeRows(name, 32, "val"),
    schemas: [templateSchema],
    judge: "interaction",
    checked: ["tools.yaml", "interaction.yaml"],
  };
}

/** A task around existing tools: initial rows and a reward. */
function wrapTools(name: string, { toolsFile, schemas, origin }: ToolSource): TaskParts {
  return {
    files: { "README.md": makeToolsReadme(name, origin), "tools.yaml": toolsFile, "reward.ts": rewardTemplate },
    train: makeToolRows(name, schemas, Math.max(32, schemas.length), "train"),
    val: makeToolRows(name, schemas, Math.max(8, schemas.length), "val"),
    schemas,
    judge: "reward",
    checked: ["tools.yaml"],
  };
}
