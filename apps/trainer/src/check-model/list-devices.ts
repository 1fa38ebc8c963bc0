import type { Device } from "@cria/core";
import { getRuntimeInfo } from "@cria/engine";
import { listBackends, listMissingParts } from "@cria/engine/internal";

/**
 * Devices of this machine, by llama.cpp's names: "CPU", and "CUDA0", "MTL0" (Metal) or "Vulkan0" where the engine finds
 * everything that a GPU needs. Of Metal's and Vulkan's only the first, which the engine takes.
 */
export function listDevices(): string[] {
  // Only a loaded GPU backend can name its devices.
  const usable = listBackends().filter((name) => listMissingParts(name).length === 0);
  const found = getRuntimeInfo().devices.filter((name) => usable.some((backend) => backend === readKind(name)));
  return ["CPU", ...found.filter((name) => !/^(MTL|Vulkan)[1-9]/.test(name))];
}

/** The option of a device that llama.cpp names, such as "Vulkan0". */
export const readKind = (device: string): Exclude<Device, "auto"> =>
  device.toLowerCase().replace(/\d+$/, "").replace(/^mtl$/, "metal") as Exclude<Device, "auto">;
