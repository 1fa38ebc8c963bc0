export {
  type ClusterView,
  type CountsByKind,
  clusterViewSchema,
  type WorkerState,
  type WorkerView,
} from "./cluster-view.js";
export type { LivePhase, LiveState } from "./live-state.js";
