export function listModules(): { name: string; source: string }[];
