import type { ChatAnswer, ChatEvent, ChatRequest } from "@cria/rollout";
import type { RequestError } from "../request-error.js";
import type { GivenImage } from "./read-content.js";

/** What a client wants to know of the tokens of an answer. */
export interface TokenWishes {
  /** The ids, of prompt and answer. */
  ids: boolean;
  /** A logprob for each sampled token. */
  logprobs: boolean;
}

/** What every protocol's request comes down to. */
export interface ChatCall {
  request: ChatRequest;
  /** Answers to the same conversation, at least 1. */
  n: number;
  stream: boolean;
  wishes: TokenWishes;
  /** Those of `request`, as they were given. */
  images: readonly GivenImage[];
}

/** A token as text, and its bytes; null where the text cannot say them (a part of a character). */
export interface SpelledToken {
  text: string;
  bytes: Uint8Array | null;
}

/** What an answer says beside the model's words. */
export interface AnswerContext {
  /** Unique; the protocol puts its prefix before it. */
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
  fingerprint: string;
  spell: (tokenIds: ArrayLike<number>) => SpelledToken[];
}

/** One event of a stream. */
export interface ServerEvent {
  /** The name, in protocols whose events have one. */
  event?: string;
  /** JSON, or the text `[DONE]`. */
  data: object | string;
}

/** Writes one streamed answer; each method returns what is to be sent now. */
export interface AnswerStream {
  begin(): ServerEvent[];
  add(choice: number, event: ChatEvent): ServerEvent[];
  end(answers: readonly ChatAnswer[]): ServerEvent[];
  /** What ends a stream whose answer failed after `begin`. */
  fail(error: RequestError): ServerEvent[];
}

/** A protocol of conversations: how its requests are read, and its answers and errors written. Pure. */
export interface Protocol<Call extends ChatCall = ChatCall> {
  /** @throws RequestError 400 that names the wrong field. */
  read(body: unknown): Call;
  answer(call: Call, answers: readonly ChatAnswer[], context: AnswerContext): object;
  stream(call: Call, context: AnswerContext): AnswerStream;
  error(error: RequestError): object;
}
