/** One number of ours with the same number of each peer. */
export interface Row {
  case: string;
  /** The measured quantity, with its unit. */
  metric: string;
  ours: number;
  peers: Record<string, number>;
  /** Settings, where several were tried: of "ours" and of each peer. */
  settings?: Record<string, UsedSetting>;
  /** SHA-256 of what our runs made, each different one once. */
  digests?: readonly string[];
  /** Peers with a handicap on this machine, with its cause: their numbers give no ratio. */
  crippled?: Record<string, string>;
  /** The target in words; null when the row only informs. */
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

/** The results of a benchmark. */
export interface Measured {
  rows: Row[];
  /** Peers whose products were measured separately. */
  peerChecks?: PeerCheck[];
}

/** The rate of a peer's F32 matrix product compared with the machine's: a peer with a slow BLAS does not count. */
export interface PeerCheck {
  peer: string;
  /** The library that multiplies, for example "OpenBLAS 0.3.21". */
  blas: string;
  threads: number;
  /** GFLOP/s of its product of two 1536 x 1536 matrices, the best of many. */
  gflops: number;
  /** GFLOP/s of as many threads that do nothing but multiply-adds in registers, measured in the same minute. */
  peakGflops: number;
  /** Why no ratio is made with this peer; null when nothing holds it back. */
  fault: string | null;
}
