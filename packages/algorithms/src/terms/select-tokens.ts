import type { LossCandidates, LossInputs } from "@cria/core";
import { pickRows } from "@cria/core/internal";
import { nameWeights } from "./loss-term.js";
import { codeOf, TOKEN_KIND, type TokenKind } from "./token-kinds.js";

/** The tokens of a micro-batch that a term sees. */
export interface Selection {
  /** The micro-batch with only these tokens; sequences without one are left out. */
  inputs: LossInputs;
  /** Their places in the micro-batch; null: all of it. */
  kept: readonly number[] | null;
}

/** Selects the tokens of terms of one micro-batch; equal selections are made once. */
export class TokenSelections {
  private readonly made = new Map<string, Selection>();

  constructor(private readonly inputs: LossInputs) {}

  /** Tokens of a kind whose rows have a weight other than 0 in the term. */
  of(term: string, kind: TokenKind): Selection {
    const weights = this.inputs.columns[nameWeights(term)];
    const without = weights?.includes(0) ? weights : undefined;
    const key = without ? `${kind} ${term}` : kind;
    const selection = this.made.get(key) ?? select(this.inputs, kind, without);
    this.made.set(key, selection);
    return selection;
  }
}

function select(inputs: LossInputs, kind: TokenKind, weights: Float32Array | undefined): Selection {
  const { [TOKEN_KIND]: kinds, ...columns } = inputs.columns;
  // Most batches have sampled tokens alone, and no weights.
  if (!kinds && !weights && kind === "sampled") return { inputs, kept: null };
  const code = codeOf(kind);
  const sees = (i: number) => (kinds?.[i] ?? 0) === code && weights?.[i] !== 0;
  const kept: number[] = [];
  for (let i = 0; i < inputs.logprobs.length; i++) if (sees(i)) kept.push(i);
  if (kept.length === inputs.logprobs.length) return { inputs: { ...inputs, columns }, kept: null };
  return { inputs: pickTokens({ ...inputs, columns }, kept), kept };
}

/** The micro-batch with only some of its tokens. */
function pickTokens(inputs: LossInputs, kept: readonly number[]): LossInputs {
  const offsets = [0];
  const sequenceIndices: number[] = [];
  let next = 0;
  inputs.sequenceIndices.forEach((index, s) => {
    while (next < kept.length && kept[next]! < inputs.offsets[s + 1]!) next++;
    if (next === offsets.at(-1)) return;
    offsets.push(next);
    sequenceIndices.push(index);
  });
  const pick = (values: Float32Array) => pickRows(values, kept);
  return {
    ...inputs,
    sequenceIndices: Int32Array.from(sequenceIndices),
    offsets: Int32Array.from(offsets),
    logprobs: pick(inputs.logprobs),
    entropy: pick(inputs.entropy),
    columns: Object.fromEntries(Object.entries(inputs.columns).map(([name, values]) => [name, pick(values)])),
    ...(inputs.candidates ? { candidates: pickCandidates(inputs.candidates, kept) } : {}),
  };
}

/** The candidates of only some tokens. */
function pickCandidates({ count, ids, logprobs, columns }: LossCandidates, kept: readonly number[]): LossCandidates {
  return {
    count,
    ids: pickRows(ids, kept, count),
    logprobs: pickRows(logprobs, kept, count),
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, pickRows(values, kept, count)])),
  };
}
