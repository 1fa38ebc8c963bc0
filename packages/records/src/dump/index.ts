export { type DumpContext, describeTrajectories, type TokenDetails } from "./describe-trajectories.js";
export { DumpImages, describeMessages, nameImageFile } from "./dump-images.js";
export {
  DUMP_FORMAT_VERSION,
  type DumpCall,
  type DumpImage,
  type DumpLine,
  type DumpSpan,
  type DumpTurn,
} from "./dump-line.js";
export { findMismatch } from "./find-mismatch.js";
export { type JudgeAgainOptions, type JudgedAgain, judgeAgain } from "./judge-again.js";
export { makeTrainingMessages, type TrainingMessages, type TrainingMessagesOptions } from "./make-training-messages.js";
export { parseDumpLine, readDump } from "./read-dump.js";
export { isOfRow, restoreRow } from "./restore-trajectory.js";
export { TokenTexts } from "./token-texts.js";
export { formatDumpLine, writeDump, writeTrainingRows } from "./write-dump.js";
