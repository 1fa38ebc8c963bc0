import type { ArgDef, ArgsDef, CommandDef } from "citty";

/** Renders docs/commands.md: every command with its arguments, its options, and the text below them in its help. */
export function renderCommands(
  commands: Readonly<Record<string, CommandDef>>,
  notes: Readonly<Record<string, string>>,
): string {
  const names = Object.keys(commands).sort();
  const overview = names.map((name) => `| [\`cria ${name}\`](#cria-${name}) | ${describe(commands[name]!)} |`);
  const sections = names.map((name) => renderCommand(`cria ${name}`, commands[name]!, notes[name]));
  return `# Commands

<!-- Written from the commands (apps/trainer/src/commands): edit those. -->

Every command takes \`--json\` (the result alone, on standard output), \`--verbose\` (stacks of errors) and \`--help\`. [Runs](runs.md#for-scripts)
has the exit codes. Keys of a config are given as \`key.path=value\`, without dashes.

| command | what it does |
| --- | --- |
${overview.join("\n")}

${sections.join("\n\n")}
`;
}

const describe = (command: CommandDef) => escapeCell((command.meta as { description?: string }).description ?? "");

function renderCommand(name: string, command: CommandDef, note?: string): string {
  const { args = {}, subCommands = {} } = command as { args?: ArgsDef; subCommands?: Record<string, CommandDef> };
  const shown = Object.entries(args).filter(([key]) => key !== "json" && key !== "verbose");
  const words = shown.map(([key, arg]) => (arg.type === "positional" ? renderPositional(key, arg) : "")).join("");
  const hasOptions = shown.some(([, { type }]) => type !== "positional");
  const rows = shown.map(
    ([key, arg]) => `| ${renderName(key, arg)} | ${escapeCell(arg.description ?? "")}${renderDefault(arg)} |`,
  );
  const inner = Object.entries(subCommands).map(([word, each]) => renderCommand(`${name} ${word}`, each));
  return [
    `## ${name}`,
    `${describe(command)}.`,
    ...(inner.length > 0 ? [] : [`\`\`\`text\n${name}${words}${hasOptions ? " [options]" : ""}\n\`\`\``]),
    ...(rows.length > 0 ? [["| argument or option | meaning |", "| --- | --- |", ...rows].join("\n")] : []),
    ...(note === undefined ? [] : [`\`\`\`text\n${note}\n\`\`\``]),
    ...inner.map((text) => text.replace(/^## /, "### ")),
  ].join("\n\n");
}

const renderPositional = (key: string, { required }: ArgDef) => (required === false ? ` [${key}]` : ` <${key}>`);

function renderName(key: string, { type, required }: ArgDef): string {
  if (type === "positional") return `\`${key}\``;
  const value = type === "boolean" ? "" : ` <${type === "enum" ? "word" : "value"}>`;
  return `\`--${key}${value}\`${required === true ? ", required" : ""}`;
}

const renderDefault = ({ type, default: value }: ArgDef) =>
  value === undefined || type === "boolean" ? "" : ` (default: \`${String(value)}\`)`;

/** Text in a cell of a table: no bars, and no brackets that would be HTML. */
function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/<(?=[\w|])/g, "&lt;");
}
