// A policy learns to read digits.   npm start [seed]
import { showLearning } from "./show.js";

await showLearning(import.meta.dirname, Number(process.argv[2] ?? 1));
