import { UNNAMED_ROLE } from "@cria/core/internal";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { makeTurns } from "./estimator-turn.js";

/**
 * Role-conditioned advantage estimation (RAE, Liu et al. 2025, SPIRAL, arXiv:2506.24119), for episodes in which one
 * policy plays several roles. Each role of a data source (a game) has a baseline of its own:
 *
 *     A_role = R_role - b_role               on all tokens of the role; b is read before R moves it, and begins at 0
 *     b_role <- decay b_role + (1 - decay) R_role
 *     R_role = the episode's own reward + the rewards on the role's tokens
 *
 * There is no division by a standard deviation. Trajectories are taken in their order. The baselines are the
 * estimator's `state`. Turns without a role count as one role; a role without a trained token is left out. Without
 * `episodeRewards`, an outcome that is spread over the tokens belongs to the roles that said them.
 */
export const estimateRae: AdvantageEstimator = estimate;

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { responseMask, dataSources, baselineDecay: decay = 0.95, state = {} } = inputs;
  const turns = inputs.turns ?? makeTurns(inputs);
  const advantages = new Float32Array(responseMask.length);
  const returns = new Float32Array(responseMask.length);
  const baselines = new Map(Object.entries(state));
  const earned = new Map<string, number[]>();
  for (const i of turns.keys())
    for (const [role, { tokens, value }] of sumByRole(inputs, i, turns[i]!)) {
      const key = dataSources ? `${dataSources[i]}/${role}` : role;
      const baseline = baselines.get(key) ?? 0;
      for (const t of tokens) {
        advantages[t] = value - baseline;
        returns[t] = value;
      }
      baselines.set(key, decay * baseline + (1 - decay) * value);
      const values = earned.get(key) ?? [];
      values.push(value);
      earned.set(key, values);
    }
  const metrics: Record<string, number> = {};
  for (const [key, values] of earned) {
    metrics[`rae/${key}/return/mean`] = values.reduce((sum, value) => sum + value, 0) / values.length;
    metrics[`rae/${key}/baseline`] = baselines.get(key)!;
  }
  return { advantages, returns, metrics, state: Object.fromEntries(baselines) };
}

interface RoleReturn {
  /** Its sampled tokens, as indices into the inputs. */
  tokens: number[];
  value: number;
}

/** The return of each role in trajectory `i`. */
function sumByRole(
  { tokenLevelRewards, responseMask, offsets, episodeRewards }: AdvantageInputs,
  i: number,
  turns: readonly { start: number; end: number; role?: string }[],
): Map<string, RoleReturn> {
  const shared = episodeRewards?.[i] ?? 0;
  let last = offsets[i + 1]! - 1;
  while (last >= offsets[i]! && !responseMask[last]) last--;
  const roles = new Map<string, RoleReturn>();
  for (const { start, end, role = UNNAMED_ROLE } of turns)
    for (let t = offsets[i]! + start; t < offsets[i]! + end; t++) {
      if (!responseMask[t]) continue;
      const own = roles.get(role) ?? { tokens: [], value: shared };
      roles.set(role, own);
      own.tokens.push(t);
      // The episode's own reward lies on its last token, and is no reward of that token's role.
      own.value += tokenLevelRewards[t]! - (t === last ? shared : 0);
    }
  return roles;
}
