export function listCandidates(): string[];
export function loadAddon(): unknown;
