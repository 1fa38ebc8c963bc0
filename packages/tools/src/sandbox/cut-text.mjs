/**
 * Cuts the middle out of a text that is longer than `maxBytes` bytes of UTF-8.
 * @param {string} text
 * @param {number} maxBytes
 */
export function cutText(text, maxBytes) {
  // A UTF-16 unit takes at most 3 bytes.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const gap = "\n...\n";
  const half = Math.max(Math.floor((maxBytes - gap.length) / 2), 0);
  // Whole characters only: a split one decodes to U+FFFD, and is dropped.
  const head = Buffer.from(text.slice(0, half))
    .subarray(0, half)
    .toString()
    .replace(/\uFFFD+$/, "");
  const tail =
    half === 0
      ? ""
      : Buffer.from(text.slice(-half))
          .subarray(-half)
          .toString()
          .replace(/^\uFFFD+/, "");
  return `${head}${gap}${tail}`.slice(0, Math.max(maxBytes, 0));
}
