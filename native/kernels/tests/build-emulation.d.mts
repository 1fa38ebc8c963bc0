export const kernelSources: string[];
export function buildEmulation(): Promise<{ check: string; library: string }>;
