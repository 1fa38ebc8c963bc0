/** Marks of Harmony: what begins a message, what ends its header, and what ends it. */
export const harmonyMarks = {
  start: "<|start|>",
  message: "<|message|>",
  ends: ["<|end|>", "<|call|>", "<|return|>"],
} as const;

/** What the header of a message says: its channel and whom it is addressed to, "" where it does not say. */
export function readHarmonyHead(head: string): { channel: string; recipient: string } {
  return {
    channel: /<\|channel\|>\s*(\w{1,40})/.exec(head)?.[1] ?? "",
    recipient: /(?:^|\s|>)to=([^\s<]{1,200})/.exec(head)?.[1] ?? "",
  };
}
