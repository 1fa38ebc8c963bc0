import { getRuntimeInfo, inspectCuda } from "@cria/engine";

/** What can compute here, as llama.cpp names it: "CPU", and "CUDA0" where the engine finds all that a GPU needs. */
export function listDevices(): string[] {
  // The GPU's backend must be loaded before it is named.
  const missing = inspectCuda().some(({ name, problem }) => problem !== null && name !== "kernels");
  const gpus = missing ? [] : getRuntimeInfo().devices.filter((name) => name.startsWith("CUDA"));
  return ["CPU", ...gpus];
}
