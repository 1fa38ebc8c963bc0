// Only for tests of this repository: it needs vitest, and is not published.

export { type ClusterRunOptions, type ClusterRunResult, runOnCluster } from "./cluster-runs.js";
export { describeWithNats, NatsServer, smallBounds } from "./nats-server.js";
