import { getRuntimeInfo, inspectCuda } from "@cria/engine";

/**
 * Devices of this machine, by llama.cpp's names: "CPU", and "CUDA0" where the engine finds everything that a GPU needs.
 */
export function listDevices(): string[] {
  // Only a loaded GPU backend can name its devices.
  const missing = inspectCuda().some(({ name, problem }) => problem !== null && name !== "kernels");
  const gpus = missing ? [] : getRuntimeInfo().devices.filter((name) => name.startsWith("CUDA"));
  return ["CPU", ...gpus];
}
