import picocolors from "picocolors";

/** Colours on a terminal only: not into files and pipes, and not because a CI variable is set. NO_COLOR turns them off. */
export const colors = picocolors.createColors(process.stdout.isTTY === true && !process.env.NO_COLOR);
