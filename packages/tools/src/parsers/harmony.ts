/** Marks of Harmony: the beginning of a message, the end of its header, and the ends of a message. */
export const harmonyMarks = {
  start: "<|start|>",
  message: "<|message|>",
  ends: ["<|end|>", "<|call|>", "<|return|>"],
} as const;

/** Reads the header of a message: its channel and addressee, "" for a missing one. */
export function readHarmonyHead(head: string): { channel: string; recipient: string } {
  return {
    channel: /<\|channel\|>\s*(\w{1,40})/.exec(head)?.[1] ?? "",
    recipient: /(?:^|\s|>)to=([^\s<]{1,200})/.exec(head)?.[1] ?? "",
  };
}
