/** One number of ours beside the same number of each peer. */
export interface Row {
  case: string;
  /** What is measured, with its unit. */
  metric: string;
  ours: number;
  peers: Record<string, number>;
  /** Settings, where several were tried: of "ours" and of each peer. */
  settings?: Record<string, UsedSetting>;
  /** Peers that something holds back on this machine, and what: no ratio is made with their numbers. */
  crippled?: Record<string, string>;
  /** What counts as reached, in words; null when the row only informs. */
  target: string | null;
  /** Whether it was reached; null without a target, or with a crippled peer in it. */
  met: boolean | null;
}

export interface UsedSetting {
  /** The setting of the row's number, in words. */
  used: string;
  /** All settings that were tried, with the figure of one run. */
  tried: Record<string, number>;
}

/** What a benchmark measured. */
export interface Measured {
  rows: Row[];
  /** Peers whose products were measured on their own. */
  peerChecks?: PeerCheck[];
}

/** The rate of a peer's F32 matrix product beside the machine's: a peer with a slow BLAS is no peer. */
export interface PeerCheck {
  peer: string;
  /** What multiplies, for example "OpenBLAS 0.3.21". */
  blas: string;
  threads: number;
  /** GFLOP/s of its product of two 1536 x 1536 matrices, the best of many. */
  gflops: number;
  /** GFLOP/s of as many threads that do nothing but multiply-adds in registers, measured in the same minute. */
  peakGflops: number;
  /** Why no ratio is made with this peer; null when nothing holds it back. */
  fault: string | null;
}
