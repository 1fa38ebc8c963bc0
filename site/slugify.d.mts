export function slugify(heading: string): string;
