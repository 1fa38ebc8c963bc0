export function checkSite(html: string, modules: readonly string[]): string[];
