// Tries a projector's file in this process, which a damaged file may end:
//   node try-projector.cjs <the model's file> <options of tryProjector, as JSON>
// Prints one line of JSON: what is wrong with the file, or null.
const { loadAddon } = require("../index.cjs");

const [model, options] = process.argv.slice(2);
loadAddon()
  .tryProjector(model, JSON.parse(options))
  .then(
    () => console.log("null"),
    (error) => console.log(JSON.stringify({ ...error, message: error.message })),
  );
