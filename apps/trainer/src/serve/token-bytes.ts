import { readGguf } from "@cria/engine";

/** Types of tokens in a GGUF whose text is their bytes. */
const CONTROL = 3;
const USER_DEFINED = 4;

/**
 * Bytes of each token, from the vocabulary in a GGUF file: a token may be a part of a character, which no text can
 * express.
 * @returns null for vocabularies of other kinds than byte-level BPE and SentencePiece, and for ids beyond it.
 * @throws EngineError when the file cannot be read.
 */
export async function readTokenBytes(path: string): Promise<(tokenId: number) => Uint8Array | null> {
  const { metadata } = await readGguf(path);
  const kind = metadata.get("tokenizer.ggml.model")?.value;
  const tokens = readStrings(metadata.get("tokenizer.ggml.tokens")?.raw);
  const types = readIntegers(metadata.get("tokenizer.ggml.token_type")?.raw);
  const spell = kind === "gpt2" ? spellByteLevel : kind === "llama" ? spellSentencePiece : null;
  return (id) => {
    const token = tokens[id];
    if (spell === null || token === undefined) return null;
    const isPlain = types[id] === CONTROL || types[id] === USER_DEFINED;
    return isPlain ? new TextEncoder().encode(token) : spell(token);
  };
}

/** Every byte is a character: printable ones are themselves, the others follow from U+0100 on. */
function spellByteLevel(token: string): Uint8Array | null {
  const bytes = Array.from(token, (character) => byteOfCharacter.get(character));
  return bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes as number[]) : null;
}

const byteOfCharacter = makeByteTable();

function makeByteTable(): Map<string, number> {
  const prints = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  const table = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) table.set(String.fromCharCode(prints(byte) ? byte : next++), byte);
  return table;
}

/** Spaces are U+2581, and bytes without a token are `<0xE2>`. */
function spellSentencePiece(token: string): Uint8Array {
  const hex = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
  return hex === undefined
    ? new TextEncoder().encode(token.replaceAll("\u2581", " "))
    : Uint8Array.of(Number.parseInt(hex, 16));
}

/** Start of an array's entries in a raw entry: after key, type, type of entries and their number. */
function openArray(raw: Buffer | undefined): { raw: Buffer; at: number; count: number } | null {
  if (!raw) return null;
  const at = 8 + Number(raw.readBigUInt64LE(0)) + 8;
  return { raw, at: at + 8, count: Number(raw.readBigUInt64LE(at)) };
}

function readStrings(entry: Buffer | undefined): string[] {
  const array = openArray(entry);
  if (!array) return [];
  let { at } = array;
  return Array.from({ length: array.count }, () => {
    const length = Number(array.raw.readBigUInt64LE(at));
    at += 8 + length;
    return array.raw.toString("utf8", at - length, at);
  });
}

function readIntegers(entry: Buffer | undefined): number[] {
  const array = openArray(entry);
  if (!array) return [];
  return Array.from({ length: array.count }, (_, i) => array.raw.readInt32LE(array.at + 4 * i));
}
