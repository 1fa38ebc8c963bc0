/** @see python-setup.mjs */
export const SETUP: string;
