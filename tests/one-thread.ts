import { syncBuiltinESMExports } from "node:module";
import os from "node:os";

// A model that is loaded without a number of threads takes the cores that there are. Several processes test at once:
// threads that wait for each other spin, and on busy cores that is most of what they do.
os.availableParallelism = () => 1;
syncBuiltinESMExports();
