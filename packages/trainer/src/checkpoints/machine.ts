/**
 * The properties of a machine that, beside the config, determine the last bits of a run on a CPU. Stored in
 * `config.json` and in a checkpoint's `data.json`.
 */
export interface Machine {
  /** The engine's kernel: "portable", "avx2" or "avx512". */
  cpu_kernel: string;
  /** ggml's build for the other operations: "haswell", ... */
  ggml_build: string;
}

/**
 * Describes this machine. @throws EngineError when the addon does not load, or CRIA_CPU_KERNEL names no kernel of
 * this CPU.
 */
export async function describeMachine(): Promise<Machine> {
  const { getRuntimeInfo } = await import("@cria/engine");
  const { cpuKernel, ggmlBuild } = getRuntimeInfo();
  return { cpu_kernel: cpuKernel, ggml_build: ggmlBuild };
}

/** Describes a change of kernels since the run's earlier part; null if they are equal or were not recorded. */
export function compareMachines(before: Machine | null, now: Machine): string | null {
  if (!before || (before.cpu_kernel === now.cpu_kernel && before.ggml_build === now.ggml_build)) return null;
  const show = ({ cpu_kernel, ggml_build }: Machine) => `CPU kernel ${cpu_kernel} with ggml's build ${ggml_build}`;
  return (
    `warning: the checkpoint was made by ${show(before)}, this process has ${show(now)}: ` +
    "on a CPU the run goes on with other last bits than it would have had " +
    `(CRIA_CPU_KERNEL=${before.cpu_kernel} asks for that kernel, where the CPU has it)`
  );
}
