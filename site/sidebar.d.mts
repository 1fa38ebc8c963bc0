export const groups: readonly { title: string; pages: readonly string[] }[];
