import { join } from "node:path";
import type { CommandDef } from "citty";
import { expect, it } from "vitest";
import { commands, notes } from "./all-commands.js";
import { renderCommands } from "./render-commands.js";

const page = join(import.meta.dirname, "..", "..", "..", "..", "docs", "commands.md");

it("docs/commands.md has every command with its options (vitest -u writes it)", async () => {
  await expect(renderCommands(commands as unknown as Record<string, CommandDef>, notes)).toMatchFileSnapshot(page);
});
