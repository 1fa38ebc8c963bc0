/** Address of a client's session. */
export interface Place {
  /** URL of the session, without /v1. */
  url: string;
  apiKey: string;
  model: string;
}

type JsonSchema = {
  type: "object";
  properties: Record<string, { type: "string" }>;
  required: string[];
};

/** The subject of a conversation. */
export interface Topic {
  system: string;
  question: string;
  tools: Record<string, { description: string; parameters: JsonSchema }>;
  call(name: string, input: unknown): string;
}

const clock = {
  description: "Says what time it is.",
  parameters: { type: "object" as const, properties: {}, required: [] },
};

/** A tool with one text. */
const describeTool = (description: string, field: string) => ({
  description,
  parameters: { type: "object" as const, properties: { [field]: { type: "string" as const } }, required: [field] },
});

export const weather: Topic = {
  system: "You help.",
  question: "How is the weather?",
  tools: { weather: describeTool("Says how the weather is.", "city"), clock },
  call: (name, input) => (name === "clock" ? "noon" : `${(input as { city: string }).city}: sunny`),
};

/** A task that the embedded policy has learned. */
export const stamps: Topic = {
  system: "You solve problems. Use the tool to compute, then answer with ####.",
  question: "Emma has 86 stamps and loses 58. How many stamps are left?",
  tools: { calculator: describeTool("Computes.", "expression"), clock },
  call: (name) => (name === "clock" ? "noon" : "28"),
};

/** A call in short: its name and its arguments. */
export function writeCall(name: string, input: unknown): string {
  return [name, ...Object.values(input as object)].join(" ");
}

/** A PNG file as a data address. */
export function toAddress(image: Uint8Array): string {
  return `data:image/png;base64,${Buffer.from(image).toString("base64")}`;
}
