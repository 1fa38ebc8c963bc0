const orientationTag = 0x0112;
const entryBytes = 12;

/**
 * The camera's orientation in EXIF's data, a small TIFF file: 1 to 8. 1, upright, where nothing or something else is
 * said.
 */
export function readExifOrientation(exif: Uint8Array): number {
  // Some writers keep the prefix that a JPEG has before the same data.
  const hasPrefix = String.fromCharCode(...exif.subarray(0, 6)) === "Exif\0\0";
  const tiff = hasPrefix ? exif.subarray(6) : exif;
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  try {
    const order = view.getUint16(0);
    const isLittle = order === 0x4949;
    if (!isLittle && order !== 0x4d4d) return 1;
    const directory = view.getUint32(4, isLittle);
    const count = view.getUint16(directory, isLittle);
    for (let i = 0; i < count; i++) {
      const entry = directory + 2 + i * entryBytes;
      if (view.getUint16(entry, isLittle) !== orientationTag) continue;
      const orientation = view.getUint16(entry + 8, isLittle);
      return orientation >= 1 && orientation <= 8 ? orientation : 1;
    }
    return 1;
  } catch {
    // It ends early. Damaged notes about a picture do not damage the picture.
    return 1;
  }
}
