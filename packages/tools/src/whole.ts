// The whole of the package as the build's second entry: the code then stands in chunks, and `index.js` names it alone. Bundlers keep
// or drop a file as one, so a name that stands beside code would bring that code along.

export * from "./index.js";
