/** @see output-buffer.mjs */
export function makeOutputBuffer(capacity: number): SharedArrayBuffer;
export function writeOutput(buffer: SharedArrayBuffer, text: string): void;
export function readOutput(buffer: SharedArrayBuffer): { text: string; truncated: boolean };
