// The whole package as the build's second entry: the code is then in chunks, and `index.js` only names it. Bundlers
// keep or drop whole files, so a name in a file with code would bring that code along.

export * from "./index.js";
