export const interactionTemplate = `import { interaction } from "cria";

/** Answers of the model until the conversation ends. */
const mostAttempts = 2;

/** Replies to the model when it makes no tool call. */
export const myInteraction = interaction({
  /** Makes the state of a conversation, before its first turn. kwargs: the row's extra_info.interaction_kwargs. */
  create: ({ groundTruth }) => ({ truth: Number(groundTruth), attempts: 0, solved: false }),

  /** Gives the next user message after each answer, or ends the conversation. score goes to the answered turn. */
  reply: ({ answer, state }) => {
    state.attempts++;
    const found = /####\\s*(-?[\\d.,]+)/.exec(answer);
    state.solved = found !== null && Number(found[1]!.replaceAll(",", "")) === state.truth;
    return {
      shouldTerminate: state.solved || state.attempts >= mostAttempts,
      content: state.solved ? "Right." : "That is wrong. Use the tool to compute, then answer with ####.",
      score: 0,
      data: { solved: state.solved ? 1 : 0 },
    };
  },

  /** Gives the reward of the conversation at its end, if the config names no reward function. */
  score: ({ solved }) => (solved ? 1 : 0),
});
`;
