// What `cria` adds to what its packages export. The build puts it into chunks of its own, so that `index.js` names things alone:
// bundlers keep or drop a file as one, so a name that stands beside code would bring that code along.

export { embeddedPolicy } from "./assets/embedded-policy.js";
export { type DemoOptions, type DemoSummary, runDemo } from "./demo/run-demo.js";
export { type CreateCriaOptions, type Cria, createCria } from "./production/create-cria.js";
