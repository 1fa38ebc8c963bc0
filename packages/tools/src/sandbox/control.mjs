/** Fields of the Int32Array that a child's main thread and its watchdog share. */
export const STATE = 0;
/** Counts programs, so that the watchdog sees when another one has begun. */
export const JOB = 1;
/** Limits of the program that runs, in milliseconds. */
export const CPU_MS = 2;
export const WALL_MS = 3;
/** Resident memory in MiB at which the process ends. */
export const RSS_MB = 4;
export const FIELDS = 5;

/** States: no program runs; a program runs; the thread that set this state has answered it. */
export const IDLE = 0;
export const RUNNING = 1;
export const ANSWERED = 2;
