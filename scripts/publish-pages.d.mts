export function listSitePages(): Map<string, string>;
export function writePages(folder: string, out: string): void;
export function writeSitePages(out: string): void;
export function listLinks(text: string): { file: string; part: string }[];
