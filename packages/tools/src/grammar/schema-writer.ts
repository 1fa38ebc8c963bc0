import type { GrammarWriter } from "./grammar-writer.js";

/** Writes schemas as expressions of one grammar: the interface for the parts that write objects, arrays and strings. */
export interface SchemaWriter {
  readonly writer: GrammarWriter;
  /** True if "<" is escaped in the JSON, for formats whose marks count inside strings too. */
  readonly escapesTags: boolean;
  /** White space between the parts of a JSON text. */
  readonly space: string;
  /** The JSON of every value that a schema allows. `place` names it in errors. */
  write(schema: unknown, place: string): string;
  /** The mark before and behind a string. */
  readonly quote: string;
  /** Exactly the JSON of a value. */
  exactly(value: unknown): string;
  /** Exactly the name of a property. */
  key(name: string): string;
  anyValue(): string;
  anyObject(): string;
  /** @throws DataError */
  refuse(place: string, expected: string, received: string): never;
}
