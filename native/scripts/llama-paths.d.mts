export const nativeRoot: string;
export function readLlamaPin(): string;
export function findPrebuiltBins(target?: string): string;
export function hasPrebuiltBins(target?: string): boolean;
export function namePrebuiltBins(target?: string): string;
export function findLibrary(bins: string, name: string): string;
export function unpackLlamaSource(part: "headers" | "metal"): string;
