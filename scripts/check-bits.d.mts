/** Kernels that this CPU can run, the best first. */
export const usableKernels: string[];
/** The one that this process chose. */
export const ownKernel: string;
export function nameRecord(kernel: string): string;

export interface RecordedTraining {
  sha256: string;
  /** A digest of each metric's values over the steps. */
  metrics: Record<string, string>;
}

export interface RecordedDemo {
  steps: number;
  before: { sampled: number; greedy: number };
  after: { sampled: number; greedy: number };
}

export interface RecordedBits {
  lora: RecordedTraining;
  full: RecordedTraining;
  shortDemo: RecordedDemo;
  demo?: RecordedDemo;
}

export interface Platform {
  glibc: string;
  v8: string;
}

export function readRecords(): Record<string, RecordedBits & { platform: Platform }>;
export function describePlatform(): Platform;
export function computeBits(
  kernel: string,
  options?: { whole?: boolean; run?: (folder: string, args: string[]) => Promise<string> },
): Promise<RecordedBits>;
export function compareBits(recorded: Partial<RecordedBits>, computed: RecordedBits): string[];
