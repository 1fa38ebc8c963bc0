export function listCandidates(): string[];
export function loadAddon(): unknown;
export function namePrebuild(): string;
