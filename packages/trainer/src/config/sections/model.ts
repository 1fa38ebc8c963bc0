import { z } from "zod";
import { loraOptions } from "../options/model.js";
import { visionKeys } from "./vision.js";

const { shape: lora } = loraOptions;

export const modelSection = z.strictObject({
  path: z.string().describe("The model to train: a GGUF, or its address on a hub: hf:<owner>/<model>:<quantisation>."),
  ...visionKeys,
  lora_rank: lora.rank,
  lora_alpha: lora.alpha,
  target_modules: lora.targets,
  lora_adapter_path: lora.path,
  lora_roles: lora.roles,
});
