import { readSync, writeSync } from "node:fs";

/**
 * Messages between a sandbox's child process and its parent: 4 bytes of length, little endian, then the content. They
 * go through a separate pipe, because Node makes the standard ones non-blocking. This one blocks: the child only waits
 * for programs, and an answer must be written before the process may be killed.
 */
const CHANNEL = 3;

/** @returns {Buffer | null} null when the parent is gone */
export function readFrame() {
  const header = readExactly(4);
  return header && readExactly(header.readUInt32LE(0));
}

/** @returns {any} null when the parent is gone */
export function readJson() {
  const frame = readFrame();
  return frame && JSON.parse(frame.toString("utf8"));
}

/** @param {Uint8Array} content */
export function writeFrame(content) {
  const header = Buffer.alloc(4);
  header.writeUInt32LE(content.length);
  writeAll(Buffer.concat([header, content]));
}

/** @param {unknown} value */
export function writeJson(value) {
  writeFrame(Buffer.from(JSON.stringify(value), "utf8"));
}

function readExactly(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    let read = 0;
    try {
      read = readSync(CHANNEL, bytes, at, length - at, null);
    } catch (error) {
      // Windows reports a closed pipe this way.
      if (error.code !== "EOF") throw error;
    }
    if (read === 0) return null;
    at += read;
  }
  return bytes;
}

function writeAll(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(CHANNEL, bytes, at);
}
