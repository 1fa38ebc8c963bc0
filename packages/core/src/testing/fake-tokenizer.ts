import type { SpecialToken } from "../policy-engine.js";

/** Tokens of the fake model that are not bytes; their ids follow the 256 bytes, in this order. */
export const fakeSpecialTokens = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
] as const;

const firstSpecial = 256;

/** A byte-level tokenizer: one token for each UTF-8 byte, one for each special token. Exact both ways on valid text. */
export class FakeTokenizer {
  readonly vocabSize: number;
  private readonly special: readonly string[];
  private readonly specialPattern: RegExp;

  /** @param added special tokens in addition to ChatML's, which other templates print. */
  constructor(added: readonly string[] = []) {
    this.special = [...fakeSpecialTokens, ...added];
    this.vocabSize = firstSpecial + this.special.length;
    const longestFirst = [...this.special].sort((a, b) => b.length - a.length);
    const alternatives = longestFirst.map((token) => token.replace(/[|\\{}()[\]^$+*?./]/g, "\\$&")).join("|");
    this.specialPattern = new RegExp(`(${alternatives})`, "g");
  }

  /** Id of a special token. @throws RangeError for other texts. */
  idOf(special: string): number {
    const index = this.special.indexOf(special);
    if (index < 0) throw new RangeError(`${special} is not one of ${this.special.join(" ")}`);
    return firstSpecial + index;
  }

  tokenize(text: string, options: { special?: boolean } = {}): Int32Array {
    const encoder = new TextEncoder();
    if (options.special === false) return Int32Array.from(encoder.encode(text));
    const ids: number[] = [];
    // Splitting by a pattern with a group keeps the separators, at odd indices.
    text.split(this.specialPattern).forEach((part, i) => {
      if (i % 2 === 1) ids.push(this.idOf(part));
      else for (const byte of encoder.encode(part)) ids.push(byte);
    });
    return Int32Array.from(ids);
  }

  /** All are control tokens. */
  listSpecialTokens(): SpecialToken[] {
    return this.special.map((text) => ({
      id: this.idOf(text),
      text,
      control: true,
      stripLeft: false,
      stripRight: false,
    }));
  }

  detokenize(tokenIds: ArrayLike<number>, options: { special?: boolean } = {}): string {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    let bytes: number[] = [];
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!;
      if (id < firstSpecial) {
        bytes.push(id);
        continue;
      }
      text += decoder.decode(Uint8Array.from(bytes));
      bytes = [];
      if (options.special !== false) text += this.special[id - firstSpecial] ?? "";
    }
    return text + decoder.decode(Uint8Array.from(bytes));
  }
}

/** ChatML with Hermes tools, in the form of a GGUF's template. */
export const fakeChatTemplate = `{%- if tools -%}
<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools><|im_end|>
{% elif messages[0].role == 'system' -%}
<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif not (loop.first and message.role == 'system') -%}
<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor -%}
<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}`;
