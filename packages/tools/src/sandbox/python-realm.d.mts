/** @see python-realm.mjs */
export const REALM: string;
