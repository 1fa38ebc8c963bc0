import type { JsonSchema } from "@cria/core";
import { isBareKey } from "../parsers/gemma-call.js";
import { isRecord } from "../parsers/make-call.js";
import { type GrammarWriter, literal } from "./grammar-writer.js";
import { SchemaGrammar } from "./json-schema-grammar.js";
import { markedForm } from "./text-form.js";

/** Writes JSON Schemas as Gemma writes values: `{key:1,list:[true,null]}`, strings between two marks. */
export class GemmaGrammar extends SchemaGrammar {
  constructor(
    writer: GrammarWriter,
    root: JsonSchema,
    private readonly mark: string,
  ) {
    super(writer, root, true, markedForm(writer, mark));
  }

  override get quote(): string {
    return literal(this.mark);
  }

  override get space(): string {
    return '""';
  }

  override exactly(value: unknown): string {
    return literal(this.spell(value));
  }

  override key(name: string): string {
    return literal(this.spellKey(name));
  }

  private spell(value: unknown): string {
    if (typeof value === "string") return this.spellText(value);
    if (Array.isArray(value)) return `[${value.map((item) => this.spell(item)).join(",")}]`;
    if (!isRecord(value)) return JSON.stringify(value);
    return `{${Object.entries(value).map(([key, one]) => `${this.spellKey(key)}:${this.spell(one)}`)}}`;
  }

  private spellKey(key: string): string {
    return isBareKey(key) ? key : this.spellText(key);
  }

  private spellText(text: string): string {
    if (text.includes(this.mark)) this.refuse(JSON.stringify(text), `a text without ${this.mark}`, "one with it");
    return `${this.mark}${text}${this.mark}`;
  }
}
