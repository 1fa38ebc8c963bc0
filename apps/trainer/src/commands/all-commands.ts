import { chatCommand, chatNotes } from "./chat.js";
import { checkEnvCommand } from "./check-env.js";
import { checkModelCommand } from "./check-model.js";
import { coachCommand } from "./coach.js";
import { configCommand } from "./config.js";
import { dataCommand } from "./data.js";
import { demoCommand } from "./demo.js";
import { doctorCommand } from "./doctor.js";
import { evalCommand } from "./eval.js";
import { exportCommand } from "./export.js";
import { initCommand } from "./init.js";
import { describeMostUsedKeys } from "./most-used-keys.js";
import { replayCommand, replayNotes } from "./replay.js";
import { rescoreCommand, rescoreNotes } from "./rescore.js";
import { rolloutCommand } from "./rollout.js";
import { runsCommand, runsNotes } from "./runs.js";
import { serveCommand, serveNotes } from "./serve.js";
import { sftCommand, sftNotes } from "./sft.js";
import { showCommand, showNotes } from "./show.js";
import { trainCommand } from "./train.js";
import { viewCommand, viewNotes } from "./view.js";
import { watchCommand, watchNotes } from "./watch.js";
import { workerCommand, workerNotes } from "./worker.js";
import { workersCommand, workersNotes } from "./workers.js";

/** Every command, by the word that one types. */
export const commands = {
  demo: demoCommand,
  chat: chatCommand,
  serve: serveCommand,
  train: trainCommand,
  worker: workerCommand,
  sft: sftCommand,
  eval: evalCommand,
  export: exportCommand,
  doctor: doctorCommand,
  config: configCommand,
  data: dataCommand,
  rollout: rolloutCommand,
  show: showCommand,
  view: viewCommand,
  coach: coachCommand,
  watch: watchCommand,
  workers: workersCommand,
  runs: runsCommand,
  rescore: rescoreCommand,
  replay: replayCommand,
  "check-env": checkEnvCommand,
  "check-model": checkModelCommand,
  init: initCommand,
} as const;

/** Printed below a command's options in its help. */
export const notes: Readonly<Record<string, string>> = {
  show: showNotes,
  view: viewNotes,
  watch: watchNotes,
  workers: workersNotes,
  runs: runsNotes,
  rescore: rescoreNotes,
  replay: replayNotes,
  train: describeMostUsedKeys(),
  sft: sftNotes,
  chat: chatNotes,
  worker: workerNotes,
  serve: serveNotes,
};
