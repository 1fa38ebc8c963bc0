import type { Trajectory } from "@cria/core";

/**
 * Copies the parts of a trajectory that an update needs: tokens, masks, the sampler's logprobs, rewards and turns,
 * without texts, times, and fields that only dumps need.
 */
export function keepTrajectory(trajectory: Trajectory): Trajectory {
  const { timeline, segments, rewards, extraFields, metrics, branch } = trajectory;
  // Updates weigh conversations of other machines by one of their metrics; reward parts come from the judge as numbers.
  const numbers = Object.entries(extraFields).filter(([, value]) => ["number", "boolean"].includes(typeof value));
  return {
    rowIndex: trajectory.rowIndex,
    uid: trajectory.uid,
    sampleIndex: trajectory.sampleIndex,
    dataSource: trajectory.dataSource,
    tokenIds: trajectory.tokenIds,
    promptLength: trajectory.promptLength,
    responseMask: trajectory.responseMask,
    rolloutLogprobs: trajectory.rolloutLogprobs,
    messages: [],
    ...(segments ? { segments: segments.map((segment) => ({ ...segment, messages: [] })) } : {}),
    finishReason: trajectory.finishReason,
    numTurns: trajectory.numTurns,
    turnScores: trajectory.turnScores,
    toolRewards: trajectory.toolRewards,
    reward: trajectory.reward,
    rewards: { ...rewards, parts: [] },
    metrics: { ...metrics },
    ...(branch ? { branch: { ...branch } } : {}),
    extraFields: Object.fromEntries(numbers),
    ...(timeline ? { timeline: { loop: [], request: [], turns: timeline.turns } } : {}),
  };
}

const arrays = { Int32Array, Uint8Array, Float32Array, Float64Array } as const;
type ArrayName = keyof typeof arrays;

/** A trajectory as JSON; its arrays are restored bit by bit. */
export function toJson(trajectory: Trajectory): unknown {
  return JSON.parse(
    JSON.stringify(trajectory, (_, value: unknown) => {
      if (!ArrayBuffer.isView(value)) return value;
      const { buffer, byteOffset, byteLength } = value;
      return { [value.constructor.name]: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
    }),
  );
}

export function fromJson(json: unknown): Trajectory {
  return JSON.parse(JSON.stringify(json), (_, value: unknown) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    const [[name, text] = [], ...others] = Object.entries(value);
    if (others.length > 0 || typeof text !== "string" || !Object.hasOwn(arrays, name ?? "")) return value;
    const bytes = Uint8Array.from(Buffer.from(text, "base64"));
    return new arrays[name as ArrayName](bytes.buffer);
  }) as Trajectory;
}
