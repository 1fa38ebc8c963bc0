import type { Session } from "./session-type.js";

/** Steps of a run: config.total_training_steps, or as many as the epochs have. */
export function countSteps(session: Pick<Session, "config" | "trainRows">): number {
  const { trainer, data } = session.config;
  const perEpoch = Math.max(1, Math.floor(session.trainRows.length / data.train_batch_size));
  return trainer.total_training_steps ?? perEpoch * trainer.total_epochs;
}
