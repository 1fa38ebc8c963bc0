import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// The build copies the package's files into dist/assets, laid out as in the repository (tsup.config.ts). This file runs
// either in dist or, from sources, in src/assets: then there are no built files, and the repository has the originals.
const here = dirname(fileURLToPath(import.meta.url));
const built = join(here, "assets");
const root = existsSync(built) ? built : join(here, "..", "..", "..", "..");

/** Absolute path of the embedded policy, in a checkout and in an installed package. */
export const embeddedPolicy = join(root, "models", "cria-tiny.gguf");

/** Absolute path of its projector, whose weights are random: with it the policy can learn to see. */
export const embeddedProjector = join(root, "models", "dist", "cria-tiny-vision.mmproj.gguf");

/** Absolute path of the config of `cria demo`. */
export const demoConfigPath = join(root, "examples", "calculator", "config.yaml");
