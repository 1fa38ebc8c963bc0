import OpenAI from "openai";
import type { Failure } from "./client.js";

/** A failure of the OpenAI client, which others use too. */
export function readOpenAiFailure(error: unknown): Failure {
  const { status, message } = error as Failure;
  if (error instanceof OpenAI.AuthenticationError) return { kind: "wrong key", status, message };
  if (!(error instanceof OpenAI.BadRequestError)) return { kind: "other", status, message };
  return { kind: error.code === "context_length_exceeded" ? "too long" : "wrong request", status, message };
}
