import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Absolute path of the pages, which are inside the package, and at the root of a checkout. */
export const docsFolder = [join(here, "..", "docs"), join(here, "..", "..", "..", "docs")]
  .concat(join(here, "..", "..", "..", "..", "docs"))
  .find((folder) => existsSync(join(folder, "commands.md")));
