export function writePages(folder: string, out: string): void;
export function listRelativeLinks(text: string): string[];
