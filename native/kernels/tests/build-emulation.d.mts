export function buildEmulation(): Promise<{ check: string; library: string; rounding: string }>;
