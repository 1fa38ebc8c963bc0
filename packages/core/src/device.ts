/**
 * Devices on which models compute. "auto": on a GPU by CUDA where all that it needs is installed, else on the CPU. It
 * never takes Vulkan, which has been tried without a GPU only.
 */
export const devices = ["auto", "cpu", "cuda", "vulkan"] as const;
export type Device = (typeof devices)[number];
