export { type FakeRollout, type FakeRolloutOptions, makeFakeRollout, makeRow } from "./fake-rollout.js";
