// Nim: two players take 1 or 2 stones in turn, and who takes the last one wins.
import type { AgentContext } from "cria";

export interface NimRow {
  /** Stones at the beginning, at least 1. */
  stones: number;
  /** The second player: the policy itself (default), or a player without a mistake. */
  opponent?: "policy" | "best";
}

/** The move that wins; null where every move loses against a player without a mistake. */
export function findBest(stones: number): number | null {
  return stones % 3 === 0 ? null : stones % 3;
}

/** The first digit of an answer that names a move; null if it has none, or if there are fewer stones. */
export function readMove(answer: string, stones: number): number | null {
  const move = Number(/[12]/.exec(answer)?.[0] ?? 0);
  return move > 0 && move <= stones ? move : null;
}

/**
 * Plays a game. Where the policy plays both players, each call names its player as `role`, and each role has a reward.
 * Against a player without a mistake the score is 1 for a game that the policy won.
 */
export async function nim({ row, session }: Pick<AgentContext<NimRow>, "row" | "session">) {
  let { stones } = row;
  const moves = { winning: 0, possible: 0 };
  for (let turn = 0; ; turn++) {
    const [role, other] = turn % 2 === 0 ? ["first", "second"] : ["second", "first"];
    const best = findBest(stones);
    const isOurs = role === "first" || row.opponent !== "best";
    const move = isOurs ? await ask(session, role!, stones) : (best ?? 1);
    if (isOurs && best !== null) {
      moves.possible++;
      if (move === best) moves.winning++;
    }
    stones -= move ?? 0;
    if (move !== null && stones > 0) continue;
    if (row.opponent === "best") return { score: role === "first" && move !== null ? 1 : 0 };
    // A player that names no move has lost, but the other one has won nothing.
    const rewards: Record<string, number> = move === null ? { [role!]: -1, [other!]: 0 } : { [role!]: 1, [other!]: -1 };
    return { rewards, ...(moves.possible > 0 ? { winning_moves: moves.winning / moves.possible } : {}) };
  }
}

async function ask(session: AgentContext["session"], role: string, stones: number): Promise<number | null> {
  const { message } = await session.complete({
    messages: [
      { role: "system", content: `You are the ${role} player.` },
      { role: "user", content: `There are ${stones} stones. How many do you take?` },
    ],
    maxTokens: 6,
    role,
  });
  return readMove(message.content, stones);
}
