import { maskedCrc32c } from "./crc32c.js";
import type { TrackedStep } from "./tracker.js";

/**
 * TensorBoard's event files: TFRecords (u64 length, its masked CRC, data, its masked CRC; little-endian) of the protobuf
 * message tensorflow.Event. Only the fields that scalars and texts need are written:
 *
 *   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log = 7 }
 *   Summary { repeated Value value = 1 }   SessionLog { Status status = 1 }
 *   Value { string tag = 1; float simple_value = 2; TensorProto tensor = 8; SummaryMetadata metadata = 9 }
 *   TensorProto { DataType dtype = 1; TensorShapeProto { repeated Dim { int64 size = 1 } dim = 2 } tensor_shape = 2;
 *                 repeated bytes string_val = 8 }   SummaryMetadata { PluginData { string plugin_name = 1 } plugin_data = 1 }
 */

export function encodeRecord(data: Uint8Array): Buffer {
  const record = Buffer.alloc(16 + data.length);
  record.writeBigUInt64LE(BigInt(data.length), 0);
  record.writeUInt32LE(maskedCrc32c(record.subarray(0, 8)), 8);
  record.set(data, 12);
  record.writeUInt32LE(maskedCrc32c(data), 12 + data.length);
  return record;
}

/** The first event of every file. */
export function encodeFileVersion(time: number): Buffer {
  return Buffer.concat([encodeTime(time), encodeBytes(3, Buffer.from("brain.Event:2"))]);
}

/** Makes TensorBoard forget this step and later ones of earlier files. */
export function encodeSessionStart(time: number, step: number): Buffer {
  const status = encodeVarintField(1, 1);
  return Buffer.concat([encodeTime(time), encodeVarintField(2, step), encodeBytes(7, status)]);
}

export function encodeScalars({ time, step, metrics }: TrackedStep): Buffer {
  const values = Object.entries(metrics).map(([tag, value]) => {
    const number = Buffer.alloc(5);
    number.writeUInt8((2 << 3) | 5, 0);
    number.writeFloatLE(value, 1);
    return encodeBytes(1, Buffer.concat([encodeBytes(1, Buffer.from(tag)), number]));
  });
  return Buffer.concat([encodeTime(time), encodeVarintField(2, step), encodeBytes(5, Buffer.concat(values))]);
}

const DT_STRING = 7;

/** Texts under one tag, for TensorBoard's text plugin. */
export function encodeText({ time, step }: TrackedStep, tag: string, texts: readonly string[]): Buffer {
  const dimension = encodeBytes(2, encodeVarintField(1, texts.length));
  const tensor = [
    encodeVarintField(1, DT_STRING),
    encodeBytes(2, dimension),
    ...texts.map((text) => encodeBytes(8, Buffer.from(text))),
  ];
  const plugin = encodeBytes(1, encodeBytes(1, Buffer.from("text")));
  const value = Buffer.concat([
    encodeBytes(1, Buffer.from(`${tag}/text_summary`)),
    encodeBytes(8, Buffer.concat(tensor)),
    encodeBytes(9, plugin),
  ]);
  return Buffer.concat([encodeTime(time), encodeVarintField(2, step), encodeBytes(5, encodeBytes(1, value))]);
}

/** wall_time, in seconds. */
function encodeTime(time: number): Buffer {
  const field = Buffer.alloc(9);
  field.writeUInt8((1 << 3) | 1, 0);
  field.writeDoubleLE(time / 1000, 1);
  return field;
}

function encodeVarintField(field: number, value: number): Buffer {
  return Buffer.concat([encodeVarint(field << 3), encodeVarint(value)]);
}

function encodeBytes(field: number, data: Uint8Array): Buffer {
  return Buffer.concat([encodeVarint((field << 3) | 2), encodeVarint(data.length), data]);
}

/** Encodes a number from 0 to 2^53. */
function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
