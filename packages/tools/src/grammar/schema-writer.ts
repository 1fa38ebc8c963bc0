import type { GrammarWriter } from "./grammar-writer.js";

/** What writes schemas as expressions of one grammar, as its parts for objects, arrays and strings see it. */
export interface SchemaWriter {
  readonly writer: GrammarWriter;
  /** Whether no "<" may stand in the JSON, for formats whose marks count inside strings too. */
  readonly escapesTags: boolean;
  /** White space between the parts of a JSON text. */
  readonly space: string;
  /** The JSON of what a schema lets through. `place` names it in errors. */
  write(schema: unknown, place: string): string;
  /** Exactly the JSON of a value. */
  exactly(value: unknown): string;
  anyValue(): string;
  anyObject(): string;
  /** @throws DataError */
  refuse(place: string, expected: string, received: string): never;
}
