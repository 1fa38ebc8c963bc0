/**
 * The beginning of a PNG file, up to the pixels, which no fake decodes.
 * @param content 0 to 255; files with different contents have different hashes.
 */
export function fakeImageFile(width: number, height: number, content = 0): Uint8Array {
  const file = new Uint8Array(34);
  file.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  file.set([0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52], 8);
  const header = new DataView(file.buffer);
  header.setUint32(16, width);
  header.setUint32(20, height);
  // Eight bits, three colours.
  file.set([8, 2], 24);
  file[33] = content;
  return file;
}
