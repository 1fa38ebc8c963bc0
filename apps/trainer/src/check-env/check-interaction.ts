import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import type { BaseInteraction, InteractionReply } from "@cria/tools";
import { type CheckOptions, checkLeftovers, checkLength, checkOutcome, show } from "./check-tool.js";
import { countHandles, measureState } from "./find-leftovers.js";
import { type EnvReport, Findings } from "./finding.js";
import { type CallRecord, recordCalls } from "./record-calls.js";

/** Answers of the scripted model, in turn: nothing, a text, numbers, a marked answer. */
export const defaultAnswers = ["I do not know.", "", "42", "#### 42", "```python\nprint(42)\n```"];

/** Turns after which an interaction counts as never ending a conversation. */
const mostTurns = 12;

/** A scripted model talks to the interaction until it ends the conversation. */
export async function checkInteraction(
  interaction: BaseInteraction,
  options: CheckOptions,
  answers: readonly string[] = defaultAnswers,
): Promise<EnvReport> {
  const findings = new Findings();
  const { recorded, calls } = recordCalls(interaction, [
    "startInteraction",
    "generateResponse",
    "calculateScore",
    "finalizeInteraction",
  ]);
  const before = { state: measureState(interaction), handles: countHandles() };
  const { run } = makeFakeRollout({
    reply: ({ turn }) => answers[turn % answers.length]!,
    engine: { contextSize: 1_000_000 },
    interactions: [recorded],
    multiTurn: {
      toolTimeoutS: options.timeoutS,
      maxAssistantTurns: mostTurns,
      tokenizationSanityCheckMode: "disable",
    },
    responseLength: 900_000,
    n: options.conversations,
  });
  const { name } = interaction;
  const { ground_truth = "42" } = options.kwargs;
  const row = makeRow({
    reward_model: { ground_truth },
    extra_info: { interaction_kwargs: { ...options.kwargs, name } },
  });
  const trajectories = await run([row]);

  for (const call of calls) checkCall(call, options, findings);
  for (const { error } of trajectories) {
    // The calls' own findings are more exact.
    if (error !== undefined && findings.list.every((finding) => finding.level !== "error"))
      findings.error("conversation", `failed: ${error}`);
  }
  const replies = calls.flatMap(({ method, outcome }) =>
    method === "generateResponse" && outcome.kind === "returned" ? [outcome.value as InteractionReply] : [],
  );
  if (replies.length >= mostTurns * options.conversations && replies.every((reply) => !reply?.shouldTerminate)) {
    findings.warning(
      "generateResponse",
      `never ended a conversation of ${mostTurns} answers`,
      "set shouldTerminate at some point, or multi_turn.max_user_turns in the config",
    );
  }
  checkLeftovers(interaction, before, "finalizeInteraction", findings);
  return {
    kind: "interaction",
    name,
    conversations: options.conversations,
    calls: replies.length,
    findings: findings.list,
  };
}

function checkCall(call: CallRecord, options: CheckOptions, findings: Findings): void {
  const { method } = call;
  const value = checkOutcome(call, options, findings);
  if (call.outcome.kind !== "returned") return;
  if (method === "calculateScore" && !(typeof value === "number" && Number.isFinite(value)))
    findings.error(method, `returned ${show(value)}, not a finite number`);
  if (method !== "generateResponse") return;
  if (typeof value !== "object" || value === null) {
    findings.error(method, `returned ${show(value)}`, "return { shouldTerminate, content, score }");
    return;
  }
  const { shouldTerminate, content, score, data } = value as Partial<InteractionReply>;
  if (typeof shouldTerminate !== "boolean")
    findings.error(method, `shouldTerminate is ${show(shouldTerminate)}, not a boolean`);
  if (typeof content !== "string") findings.error(method, `content is ${show(content)}, not a string`);
  else checkLength(content, method, "left out where they do not fit, and end the conversation", options, findings);
  if (content === "" && shouldTerminate === false) findings.warning(method, "goes on with an empty text");
  if (!(typeof score === "number" && Number.isFinite(score)))
    findings.error(method, `score is ${show(score)}, not a finite number`, "0 means no score");
  if (data !== undefined && (typeof data !== "object" || data === null))
    findings.warning(method, `data is ${show(data)}, not an object`);
}
