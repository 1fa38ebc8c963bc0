export function findVisionLibrary(): string | null;
export function listCandidates(): string[];
export function loadAddon(): unknown;
export function namePrebuild(): string;
export function nameVisionLibrary(platform?: string): string;
export function nameVisionPackage(): string;
export const projectorTrial: string;
