export const nativeRoot: string;
export function readLlamaPin(): string;
export function findPrebuiltBins(arch?: string): string;
export function unpackLlamaSource(kind: "headers"): string;
