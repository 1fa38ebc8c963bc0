import { encodePng } from "@cria/core";
import { describeData } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import { type BaseTool, findArgumentError, type ToolOrigin, type ToolResult } from "@cria/tools";
import { checkSchema } from "./check-schema.js";
import { countHandles, findGrown, measureState } from "./find-leftovers.js";
import { type EnvReport, Findings } from "./finding.js";
import { type CallRecord, recordCalls } from "./record-calls.js";
import { sampleArguments } from "./sample-arguments.js";

export interface CheckOptions {
  /** Seconds that each call may take. */
  timeoutS: number;
  /** Conversations at once. */
  conversations: number;
  /** Characters above which a text counts as too long. */
  maxChars: number;
  /** create_kwargs of a tool, interaction_kwargs of an interaction. */
  kwargs: Record<string, unknown>;
}

export const defaultCheckOptions: CheckOptions = { timeoutS: 5, conversations: 3, maxChars: 2000, kwargs: {} };

/** Milliseconds above which other conversations notice the delay. */
const blockedLimitMs = 50;

/** A scripted model calls the tool twice correctly and once without arguments, then ends. */
export async function checkTool(
  tool: BaseTool,
  options: CheckOptions,
  givenArguments?: Record<string, unknown>,
): Promise<EnvReport> {
  const findings = new Findings();
  const usable = checkSchema(tool.schema, findings, tool.origin);
  const name = tool.schema?.function?.name ?? "?";
  const report = (calls: readonly CallRecord[]): EnvReport => ({
    kind: "tool",
    name,
    conversations: usable ? options.conversations : 0,
    calls: calls.filter((call) => call.method === "execute").length,
    findings: findings.list,
  });
  if (!usable) return report([]);
  const args = givenArguments ?? sampleArguments(tool.schema.function.parameters);
  const misfit = findArgumentError(tool.schema, args);
  if (misfit) findings.warning("schema", `${JSON.stringify(args)} does not fit it: ${misfit}`, "give --args");

  const { recorded, calls } = recordCalls(tool, ["create", "execute", "calcReward", "release"]);
  const before = { state: measureState(tool), handles: countHandles() };
  const say = (value: unknown) => `<tool_call>${JSON.stringify({ name, arguments: value })}</tool_call>`;
  const { run } = makeFakeRollout({
    reply: ({ turn }) => [say(args), say(args), say({})][turn] ?? "Done.",
    // Room for a schema of any length: the scripted model's tokens are about characters.
    engine: { contextSize: 2_000_000, images: true },
    maxPromptLength: 1_000_000,
    tools: [recorded],
    multiTurn: {
      toolTimeoutS: options.timeoutS,
      maxToolResponseLength: 10_000,
      tokenizationSanityCheckMode: "disable",
    },
    responseLength: 900_000,
    n: options.conversations,
  });
  const kwargs = { tools_kwargs: { [name]: { create_kwargs: options.kwargs } } };
  // A picture, for tools that read one.
  const bytes = encodePng({ width: 128, height: 128, rgb: new Uint8Array(128 * 128 * 3) });
  const prompt = [{ role: "user", content: "<image>hi" }];
  const trajectories = await run([makeRow({ prompt, images: [{ bytes }], extra_info: kwargs })]);

  for (const { error } of trajectories) if (error !== undefined) findings.error("conversation", `failed: ${error}`);
  for (const call of calls) checkCall(call, options, findings, tool.origin);
  checkLeftovers(tool, before, "release", findings);
  return report(calls);
}

function checkCall(call: CallRecord, options: CheckOptions, findings: Findings, origin?: ToolOrigin): void {
  const { method } = call;
  const refusal = method === "execute" ? readRefusal(call, origin) : undefined;
  if (refusal !== undefined) {
    findings.hint(
      method,
      `refuses the scripted model's arguments: ${refusal}`,
      "the model reads this text; give --args to see an answer",
    );
    return;
  }
  const value = checkOutcome(call, options, findings);
  if (call.outcome.kind !== "returned") return;
  if (method === "create") {
    const id = (value as { instanceId?: unknown } | undefined)?.instanceId;
    if (typeof id !== "string") findings.warning(method, "does not return { instanceId }");
  }
  if (method === "calcReward" && !(typeof value === "number" && Number.isFinite(value)))
    findings.error(method, `returned ${show(value)}, not a finite number`);
  if (method !== "execute") return;
  const result = value as Partial<ToolResult> | undefined;
  const text = result?.response?.text;
  if (typeof result?.response !== "object" || result.response === null) {
    findings.error(method, `returned ${show(value)}`, "return { response: { text }, reward, metrics }");
    return;
  }
  if (text !== undefined && typeof text !== "string")
    findings.error(method, `response.text is ${show(text)}, not a string`);
  if (typeof text === "string") checkLength(text, method, "cut to max_tool_response_length", options, findings);
  if (text === "") findings.warning(method, "answered with an empty text: the model learns nothing from it");
  const { reward, metrics } = result;
  if (!(typeof reward === "number" && Number.isFinite(reward)))
    findings.error(method, `reward is ${show(reward)}, not a finite number`, "0 means no step reward");
  for (const [name, metric] of Object.entries(metrics ?? {})) {
    if (!(typeof metric === "number" && Number.isFinite(metric)))
      findings.warning(method, `metric "${name}" is ${show(metric)}, not a finite number: it is dropped`);
  }
}

/** JSON-RPC's invalid request, method, parameters, and internal error: the server is alive and refused. */
const refusals = [-32600, -32601, -32602, -32603];

/**
 * The refusal of a call: tools of the AI SDK throw, and servers answer, when they reject arguments. Undefined for other
 * outcomes.
 */
function readRefusal({ outcome }: CallRecord, origin: ToolOrigin | undefined): string | undefined {
  if (outcome.kind !== "threw") return undefined;
  const { error } = outcome;
  const { code } = ((error as Error | undefined)?.cause ?? {}) as { code?: unknown };
  const isRefusal = origin === "ai-sdk" || (origin === "mcp" && refusals.includes(code as number));
  return isRefusal ? describeThrown(error) : undefined;
}

function describeThrown(error: unknown): string {
  return error instanceof Error ? error.message : show(error);
}

/** Checks the duties of every call: to end in time, without an error, and to let others run. Returns its value. */
export function checkOutcome(call: CallRecord, options: CheckOptions, findings: Findings): unknown {
  const { method, outcome } = call;
  const remedy = method === "execute" ? "return the problem as a text that the model can read" : undefined;
  if (call.blockedMs > blockedLimitMs)
    findings.warning(
      method,
      "held the event loop: every conversation waits for it",
      "use asynchronous calls, or a worker",
    );
  if (call.changedArguments) findings.error(method, "changed the messages of its arguments");
  if (outcome.kind === "pending") findings.error(method, `hangs: no answer within ${options.timeoutS} s`);
  if (outcome.kind === "threw") {
    findings.error(method, `throws: ${describeThrown(outcome.error)}`, remedy);
  }
  return outcome.kind === "returned" ? outcome.value : undefined;
}

export function checkLength(
  text: string,
  method: string,
  consequence: string,
  { maxChars }: CheckOptions,
  findings: Findings,
): void {
  if (text.length > maxChars)
    findings.warning(method, `answered with more than ${maxChars} characters: such texts are ${consequence}`);
}

/** Checks that nothing is left of instances after their release. */
export function checkLeftovers(
  target: object,
  before: { state: Map<string, number>; handles: Map<string, number> },
  method: string,
  findings: Findings,
): void {
  const grown = findGrown(before.state, measureState(target));
  if (grown.length > 0)
    findings.error(
      method,
      `never releases: after it the object still keeps ${grown.join(", ")}`,
      `delete the instance's state in ${method}`,
    );
  for (const [kind, count] of countHandles()) {
    if (count > (before.handles.get(kind) ?? 0)) findings.warning(method, `left open: ${kind}`);
  }
}

export function show(value: unknown): string {
  return describeData(value, 80);
}
