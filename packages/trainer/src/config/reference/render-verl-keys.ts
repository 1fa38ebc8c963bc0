import { trainConfigSchema } from "../train-config.js";
import { listVerlDefaults } from "../verl/verl-defaults.js";
import { verlKeys } from "../verl/verl-keys.js";
import { listKeys } from "./list-keys.js";
import { escapeCell, formatTable } from "./render-markdown.js";

const code = (value: string) => `\`${escapeCell(value)}\``;
const json = (value: unknown) => code(JSON.stringify(value));

/** Renders docs/verl-keys.md: other names, other defaults, accepted values and keys without effect. */
export function renderVerlKeys(): string {
  const own = new Map(listKeys(trainConfigSchema).map((entry) => [entry.key, entry.default]));
  const defaults = listVerlDefaults().map(({ key, verl, why }) => [
    code(key),
    json(own.get(key) ?? null),
    json(verl),
    escapeCell(why),
  ]);
  const rows = Object.entries(verlKeys);
  const names = rows.flatMap(([key, entry]) => ("alias" in entry ? [[code(key), code(entry.alias)]] : []));
  const pending = rows.flatMap(([key, entry]) =>
    "only" in entry ? [[code(key), entry.only.map(json).join(", ")]] : [],
  );
  const ignored = rows.flatMap(([key, entry]) => {
    const reason = "nothing" in entry ? entry.nothing : "unread" in entry ? entry.unread : null;
    return reason === null ? [] : [[code(key), escapeCell(reason)]];
  });
  return `# verl's keys

<!-- Written by the build of \`cria\` from packages/trainer/src/config/verl: edit the tables there. -->

[Coming from verl](verl.md) explains how configs and scripts are converted. [Config keys](config.md) has Cria's own keys.

## Defaults that differ

${formatTable(["key", "Cria", "verl", "why"], defaults)}

## Other names

Versions of verl name some keys differently. Both names have the same meaning here. The names \`token\`, \`sequence\` and \`geometric\` of
\`rollout_rs\` (verl 0.7) stand beside \`token_k1\`, \`seq_sum_k1\` and \`seq_mean_k1\` (verl 0.9), with bounds of the inverse ratio.

${formatTable(["name", "Cria's own name"], names)}

## Features that Cria lacks

These keys are accepted with the values that switch the feature off, or that ask for what happens anyway. Any other value is an error.

${formatTable(["key", "accepted"], pending)}

## Keys without effect

They are accepted with any value. A warning names them, with the reason. A key stands for all keys below it.

${formatTable(["key", "why it has no effect"], ignored)}
`;
}
