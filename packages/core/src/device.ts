/**
 * Devices on which models compute. "auto": on a GPU by CUDA where all that it needs is installed, else on the CPU. It
 * never takes Metal, which nobody has tried yet, nor Vulkan, which has been tried without a GPU only.
 */
export const devices = ["auto", "cpu", "cuda", "metal", "vulkan"] as const;
export type Device = (typeof devices)[number];
