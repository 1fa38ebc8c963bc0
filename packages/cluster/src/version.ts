import manifest from "../package.json" with { type: "json" };

/** Of all packages of Cria: they are released together. */
export const version: string = manifest.version;
