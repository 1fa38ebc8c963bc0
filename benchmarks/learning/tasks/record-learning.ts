import type { RunEvent } from "cria";
import type { Learned } from "./learning-task.js";

/** Collects from a training's events what it learned. */
export class LearningRecord {
  private readonly points: Learned["points"] = [];
  private tokens = 0;
  private seconds = 0;

  readonly report = (event: RunEvent): void => {
    if (event.type === "validated") this.points.push({ tokens: this.tokens, success: event.success ?? 0 });
    if (event.type !== "step") return;
    this.tokens += event.metrics["engine/decode_tokens"]!;
    this.seconds += event.metrics["timing_s/step"]!;
  };

  get learned(): Learned {
    return { points: this.points, seconds: this.seconds };
  }
}
