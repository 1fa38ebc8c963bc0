export type { RecordedToken, ReplayResult } from "./compare.js";
export { checkReplayModel, type OpenReplayOptions, openReplay } from "./open-replay.js";
export type { ForkOptions, ForkResult, Replay, ReplayOptions, ReplayPlace } from "./replay.js";
