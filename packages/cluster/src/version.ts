import manifest from "../package.json" with { type: "json" };

/** Version of all packages of Cria: they are released together. */
export const version: string = manifest.version;
