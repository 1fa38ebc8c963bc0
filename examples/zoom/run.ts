// A policy learns to zoom.   npm start [seed]
import { showLearning } from "../vision/show.js";

await showLearning(import.meta.dirname, Number(process.argv[2] ?? 1));
