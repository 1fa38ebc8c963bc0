/** @see python-imports.mjs */
export const IMPORT_RULES: string;
