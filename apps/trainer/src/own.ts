// Cria's exports besides those of its packages. The build puts them into separate chunks, so that `index.js` only names
// things: bundlers keep or drop a whole file, so a name in one file with code would bring that code along.

export { embeddedPolicy } from "./assets/embedded-policy.js";
export type { DemoOptions, DemoSummary } from "./demo/run-demo.js";
export { type Cria, createCria } from "./production/create-cria.js";
export type { CreateCriaOptions } from "./production/create-cria-options.js";
export { loadDataset, runDemo } from "./when-called.js";
