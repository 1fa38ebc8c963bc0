import { ConfigError } from "@cria/core";
import { Task } from "../task/task.js";
import type { TrainOptions } from "./train-options.js";

/** Makes a task of `rows` and `agent`. @throws ConfigError for one without the other, or in addition to a task. */
export function makeAgentTask({ rows, agent, task, ...options }: TrainOptions): TrainOptions {
  if (rows === undefined && agent === undefined) return { task, ...options };
  if (task === undefined && rows !== undefined && agent !== undefined)
    return { task: new Task({ rows, agent }), ...options };
  const given = Object.entries({ task, rows, agent }).flatMap(([name, value]) => (value === undefined ? [] : name));
  throw new ConfigError("do not say a task", {
    code: "config/bad-value",
    subject: "train: rows, agent",
    expected: "rows and agent, or task",
    received: given.join(", "),
    remedy: "train({ model, task: defineTask({ rows, tools, reward }) }) is for a task without an agent",
  });
}
