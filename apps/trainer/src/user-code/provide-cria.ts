import { provideHostModules } from "@cria/tools";
import * as trainer from "@cria/trainer";
import * as cria from "../index.js";

/**
 * What users' modules import as "cria" is then what runs here, though it may not be installed where they lie. For commands:
 * programs that import cria have it installed.
 */
export function provideCria(): void {
  provideHostModules({ cria, "@cria/trainer": trainer });
}
