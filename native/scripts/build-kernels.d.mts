export function findNvcc(): string | null;
export function buildKernels(): Promise<{ library: string | null; said: string | null }>;
