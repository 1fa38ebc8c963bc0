export { type RecordedCall, RecordingTool, type RecordingToolOptions } from "./recording-tool.js";
