import { listOtherNames } from "../verl/foreign-keys.js";
import { listVerlDefaults } from "../verl/verl-defaults.js";
import { type ConfigFile, configFiles } from "./config-files.js";
import { type ConfigKey, groupBySection, listKeys } from "./list-keys.js";

/** Renders docs/config.md: every key of every file, with a table per section. */
export function renderMarkdown(): string {
  const parts = configFiles.map((file) => {
    const sections = groupBySection(listKeys(file.schema));
    const tables = [...sections].map(([section, keys]) => {
      const title = section === "" ? [] : [`### \`${section}\``, ""];
      return [...title, renderTable(section, keys, file), ""].join("\n");
    });
    const place = file.list === null ? [] : [`A list under \`${file.list}\`; each entry has these keys.`, ""];
    return [`## ${file.title}`, "", ...place, ...tables].join("\n");
  });
  return `${[
    "# Config keys",
    "",
    "<!-- Written by the build of `cria` from the schemas that check configs (packages/trainer/src/config): edit those. -->",
    "",
    "`cria config` prints the same in a terminal, `cria config <key>` one key in full. `schema/*.json` of the package `cria` are JSON",
    "Schemas of these files: YAML editors check and complete by them where a file begins with",
    "`# yaml-language-server: $schema=<path>`. A key without a default must be given. Keys of verl that have another name here, and",
    "those without effect, are accepted too: [verl's keys](verl-keys.md).",
    "",
    ...parts,
  ]
    .join("\n")
    .trimEnd()}\n`;
}

function renderTable(section: string, keys: readonly ConfigKey[], file: ConfigFile): string {
  const rows = keys.map((entry) => {
    const notes = [entry.meaning, ...(file.list === null ? describeVerl(entry, file) : [])].join(" ");
    const names = entry.names ? ` Known: ${entry.names.map((name) => `\`${name}\``).join(", ")}.` : "";
    const name = section === "" ? entry.key : entry.key.slice(section.length + 1);
    return [`\`${name}\``, escapeCell(entry.type), formatDefault(entry), `${escapeCell(notes)}${names}`];
  });
  return formatTable(["key", "value", "default", "meaning"], rows);
}

/** @param rows cells in Markdown. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function describeVerl({ key }: ConfigKey, { name }: ConfigFile): string[] {
  const other = listOtherNames(key);
  const verl = name === "train" ? listVerlDefaults().find((entry) => entry.key === key) : undefined;
  return [
    ...(verl ? [`verl: \`${JSON.stringify(verl.verl)}\`.`] : []),
    ...(other.length > 0 ? [`Also \`${other.join("`, `")}\`.`] : []),
  ];
}

function formatDefault(entry: ConfigKey): string {
  return "default" in entry ? `\`${escapeCell(JSON.stringify(entry.default))}\`` : "";
}

/** Escapes text for a table cell: no bars, and no brackets that would be HTML. */
export function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/<(?=[\w|])/g, "&lt;");
}
