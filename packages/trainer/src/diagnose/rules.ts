import { clusterRules } from "./cluster-rules.js";
import { conversationRules } from "./conversation-rules.js";
import { engineRules } from "./engine-rules.js";
import { lagRules } from "./lag-rules.js";
import { noSignalRules } from "./no-signal-rules.js";
import { rewardRules } from "./reward-rules.js";
import type { Rule } from "./rule.js";
import { updateRules } from "./update-rules.js";

/** All rules of the coach. */
export const rules: readonly Rule[] = [
  ...noSignalRules,
  ...conversationRules,
  ...rewardRules,
  ...updateRules,
  ...engineRules,
  ...lagRules,
  ...clusterRules,
];

/** The rules as a table in Markdown. */
export function describeRules(): string {
  const rows = rules.map(({ name, when }) => [`\`${name}\``, when] as const);
  const wide = (column: 0 | 1) => Math.max(...rows.map((row) => row[column].length), 4);
  const line = (a: string, b: string) => `| ${a.padEnd(wide(0))} | ${b.padEnd(wide(1))} |`;
  return [
    line("rule", "it speaks when"),
    line("-".repeat(wide(0)), "-".repeat(wide(1))),
    ...rows.map(([a, b]) => line(a, b)),
  ].join("\n");
}
