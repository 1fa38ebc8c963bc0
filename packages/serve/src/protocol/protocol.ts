import type { ChatAnswer, ChatEvent, ChatRequest } from "@cria/rollout";
import type { RequestError } from "../request-error.js";
import type { GivenImage } from "./read-content.js";

/** Token data that a client asks for. */
export interface TokenWishes {
  /** The ids, of prompt and answer. */
  ids: boolean;
  /** A logprob for each sampled token. */
  logprobs: boolean;
}

/** A request in the form that all protocols share. */
export interface ChatCall {
  request: ChatRequest;
  /** Answers to the same conversation, at least 1. */
  n: number;
  stream: boolean;
  wishes: TokenWishes;
  /** Images of `request`, as the body gives them. */
  images: readonly GivenImage[];
}

/** A token as text, and its bytes; null where a text cannot hold them (a part of a character). */
export interface SpelledToken {
  text: string;
  bytes: Uint8Array | null;
}

/** Data of an answer besides the model's words. */
export interface AnswerContext {
  /** Unique id; the protocol adds its prefix. */
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
  fingerprint: string;
  spell: (tokenIds: ArrayLike<number>) => SpelledToken[];
}

/** One event of a stream. */
export interface ServerEvent {
  /** The event's name, in protocols that have names. */
  event?: string;
  /** JSON, or the text `[DONE]`. */
  data: object | string;
}

/** Writes one streamed answer; each method returns the events to send now. */
export interface AnswerStream {
  begin(): ServerEvent[];
  add(choice: number, event: ChatEvent): ServerEvent[];
  end(answers: readonly ChatAnswer[]): ServerEvent[];
  /** Final events of a stream whose answer failed after `begin`. */
  fail(error: RequestError): ServerEvent[];
}

/** A protocol of conversations: it reads requests and writes answers and errors. Pure. */
export interface Protocol<Call extends ChatCall = ChatCall> {
  /** @throws RequestError 400 with the name of the wrong field. */
  read(body: unknown): Call;
  answer(call: Call, answers: readonly ChatAnswer[], context: AnswerContext): object;
  stream(call: Call, context: AnswerContext): AnswerStream;
  error(error: RequestError): object;
}
