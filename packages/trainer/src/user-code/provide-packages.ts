import * as algorithms from "@cria/algorithms";
import * as core from "@cria/core";
import * as engine from "@cria/engine";
import * as episodes from "@cria/episodes";
import * as records from "@cria/records";
import * as rollout from "@cria/rollout";
import * as tokenizerDelta from "@cria/tokenizer-delta";
import * as tools from "@cria/tools";
import { provideHostModules } from "@cria/tools/internal";

/** Makes users' modules import the running copy of Cria. Call it before the first of them is loaded. */
export function providePackages(): void {
  provideHostModules({
    "@cria/algorithms": algorithms,
    "@cria/core": core,
    "@cria/engine": engine,
    "@cria/episodes": episodes,
    "@cria/records": records,
    "@cria/rollout": rollout,
    "@cria/tokenizer-delta": tokenizerDelta,
    "@cria/tools": tools,
  });
}
