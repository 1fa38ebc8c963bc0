export function findNvcc(): string | null;
export function kernelArguments(architectures: string[]): string[];
export function buildKernels(): Promise<{ library: string | null; said: string | null }>;
