import { isBuiltin } from "node:module";
import { isAbsolute, relative } from "node:path";
import { ClusterError } from "@cria/core";
import type { TrainConfig } from "@cria/trainer";
import { resolvePath } from "@cria/trainer/internal";

/** A key of a config with the file or module that it names. */
export interface NamedFile {
  key: string;
  value: string;
}

const isModule = (name: string) => name.includes("#");

/** Files with code that conversations run: tools, interactions, agent loops, the parser of calls. */
export function listConversationFiles({ actor_rollout_ref }: TrainConfig): NamedFile[] {
  const { multi_turn, agent } = actor_rollout_ref.rollout;
  return listNamed([
    ["multi_turn.tool_config_path", multi_turn.enable ? multi_turn.tool_config_path : null],
    ["multi_turn.interaction_config_path", multi_turn.enable ? multi_turn.interaction_config_path : null],
    ["multi_turn.format", isModule(multi_turn.format) ? multi_turn.format : null],
    ["agent.agent_loop_config_path", agent.agent_loop_config_path],
  ]);
}

/** Modules of losses, which compute gradients. */
export function listLossFiles({ actor_rollout_ref }: TrainConfig): NamedFile[] {
  const { policy_loss, loss_agg_mode, kl_loss_type } = actor_rollout_ref.actor;
  return listNamed(
    [
      ["policy_loss.loss_mode", policy_loss.loss_mode] as const,
      ["loss_agg_mode", loss_agg_mode] as const,
      ["kl_loss_type", kl_loss_type] as const,
    ].filter(([, name]) => isModule(name)),
  );
}

const listNamed = (entries: readonly (readonly [string, string | null])[]): NamedFile[] =>
  entries.flatMap(([key, value]) => (value === null ? [] : [{ key, value }]));

/** The path of a named file; null: a package's export, which names no file. */
export function pathOf(folder: string, { value }: NamedFile): string | null {
  const path = isModule(value) ? value.slice(0, value.lastIndexOf("#")) : value;
  return isModule(value) && !/^(\.{1,2}|~)?\//.test(path) ? null : resolvePath(folder, path);
}

/** True if a path lies in a folder. */
export function liesIn(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !/^\.\.[/\\]/.test(way) && !isAbsolute(way);
}

/**
 * Checks that all files lie in the folder: workers load code only from the folder of the user code and from installed
 * packages.
 * @throws ClusterError "cluster/outside-user-code" for a file elsewhere.
 */
export function checkInside(folder: string, files: readonly NamedFile[]): void {
  for (const file of files) {
    const path = pathOf(folder, file);
    const isInside =
      path === null ? !isBuiltin(file.value.slice(0, file.value.lastIndexOf("#"))) : liesIn(folder, path);
    if (isInside) continue;
    throw new ClusterError("lies outside the folder of the user code", {
      code: "cluster/outside-user-code",
      subject: file.key,
      expected: `a file in the folder of the config, ${folder}, or an export of a package`,
      received: file.value,
      remedy: "move the config next to or above the files that it names",
    });
  }
}
