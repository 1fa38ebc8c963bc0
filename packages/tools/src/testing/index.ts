export { matchesGrammar } from "./match-grammar.js";
export { type RecordedCall, RecordingTool, type RecordingToolOptions } from "./recording-tool.js";
export { sampleGrammar } from "./sample-grammar.js";
