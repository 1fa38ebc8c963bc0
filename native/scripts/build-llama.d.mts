export function compilesLlama(target?: string): boolean;
export function findBins(target?: string): string;
export function listLibraries(bins: string): string[];
