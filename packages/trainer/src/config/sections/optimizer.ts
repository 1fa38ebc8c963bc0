import { z } from "zod";
import type { criticUpdateOptions, updateOptions } from "../options/updates.js";

type Shape = (typeof criticUpdateOptions | typeof updateOptions)["shape"];

/** Keys of `optim`, which actor and critic share. */
export function makeOptimizer(options: Shape) {
  return z
    .strictObject({
      lr: options.learningRate,
      lr_scheduler_type: options.schedule,
      lr_warmup_steps: options.warmupSteps,
      lr_warmup_steps_ratio: options.warmupStepsRatio,
      min_lr_ratio: options.minLrRatio,
      num_cycles: options.numCycles,
      weight_decay: options.weightDecay,
      betas: options.betas,
    })
    .prefault({});
}
