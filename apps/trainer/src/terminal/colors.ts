import picocolors from "picocolors";

/**
 * Colours only on a terminal: not in files and pipes, and not because a CI variable is set. NO_COLOR turns them off.
 */
export const colors = picocolors.createColors(process.stdout.isTTY === true && !process.env.NO_COLOR);
