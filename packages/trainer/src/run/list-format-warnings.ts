import { findToolFormat } from "@cria/tools/internal";
import type { ConfigWarning } from "../config/list-warnings.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { readModelHeader } from "../hub/read-model-header.js";
import { probeHeader } from "../task/find-tool-format.js";

/**
 * Warns of a format of tool calls that is not the one in which the policy's chat template prints calls. None without
 * tools, for a parser of the user's own, and where the template does not say.
 */
export async function listFormatWarnings(config: TrainConfig, folder: string): Promise<ConfigWarning[]> {
  const { model, rollout } = config.actor_rollout_ref;
  const { format, tool_config_path } = rollout.multi_turn;
  const configured = findToolFormat(format);
  if (tool_config_path === null || !configured) return [];
  const path = resolvePath(folder, model.path);
  const header = await readModelHeader(path);
  const printed = header && probeHeader(header, config.data.apply_chat_template_kwargs)?.format;
  if (!printed || printed === configured.name) return [];
  return [
    {
      key: "actor_rollout_ref.rollout.multi_turn.format",
      found: `is ${format}, and the chat template of ${path} prints calls as ${printed}: calls that the model writes so are not read`,
      remedy: `set it to ${printed}`,
    },
  ];
}
