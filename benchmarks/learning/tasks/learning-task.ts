/** A task in which methods are compared. */
export interface LearningTask {
  name: string;
  /** Its config. */
  config: string;
  /** "key.path=value" of the files that are made first; they may take minutes. */
  prepare(): Promise<readonly string[]>;
  /** Steps of each method: GRPO is half-way then, or stands still. */
  steps: number;
  /** Steps with larger groups by which the teacher learns the task. */
  teacherSteps: number;
}
