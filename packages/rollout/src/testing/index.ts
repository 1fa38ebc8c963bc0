export { type FakeRollout, type FakeRolloutOptions, makeFakeRollout, makeRow, sumOnLastToken } from "./fake-rollout.js";
