export const packages: string[];
export function packAll(out: string): string[];
