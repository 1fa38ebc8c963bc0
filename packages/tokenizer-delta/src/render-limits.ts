import { getHeapStatistics } from "node:v8";
import { TokenizerError } from "@cria/core";

/**
 * Limits of one rendering of a chat template. Templates come with other people's models: an endless loop or a text that
 * doubles must end with an error. The limits grow with the template's input.
 */
export interface RenderLimits {
  /** Seconds of work. */
  seconds: number;
  /** Characters of any text or data that it makes, plus 16 for each character of its input. */
  characters: number;
  /** Bytes by which the heap may grow, plus 64 for each character of its input. */
  bytes: number;
}

export const defaultRenderLimits: RenderLimits = { seconds: 10, characters: 2 ** 21, bytes: 2 ** 28 };

/** Limits of the template itself. The longest known one has 20,000 characters. */
const longestSource = 2 ** 18;
/** The parser takes quadratic time for such a run. */
const longestSpace = 2000;

/** A template exceeds a limit. */
export class TemplateLimitError extends TokenizerError {
  constructor(summary: string, expected: string, received?: string) {
    super(summary, {
      code: "tokenizer/template-limit",
      subject: "chat template",
      expected,
      received,
      remedy: "the template is broken or made to do harm: use another file of the model",
    });
  }
}

/** @throws TemplateLimitError for a source that must not be parsed. */
export function checkSource(source: string): void {
  if (source.length > longestSource)
    throw new TemplateLimitError(
      "is too long",
      `at most ${longestSource} characters of source`,
      `${source.length} characters`,
    );
  for (const [space] of source.matchAll(/\s+/g)) {
    if (space.length > longestSpace)
      throw new TemplateLimitError(
        "has too much white space",
        `at most ${longestSpace} characters of white space in a row`,
        `${space.length} characters`,
      );
  }
}

/** Units between two checks of the clock; one is a step of the interpreter, or 1024 characters that it processes. */
const unitsPerLook = 1024;
/** A longer time between two checks means that the process was stopped, or had no CPU. */
const longestGapMs = 1000;

/** Measures one rendering. */
export class RenderMeter {
  private units = 0;
  private lastLook = performance.now();
  private activeMs = 0;
  private heapBefore: number | undefined;
  private givenCharacters: number | undefined;

  /** @param given the template's variables. */
  constructor(
    private readonly limits: RenderLimits,
    private readonly given: unknown,
  ) {}

  /** @throws TemplateLimitError when time or memory are used up. */
  charge(units: number): void {
    this.units += units;
    if (this.units >= unitsPerLook) this.look();
  }

  /** @throws TemplateLimitError when a text or data would have this many characters. */
  checkSize(characters: number): void {
    const { limits } = this;
    if (characters <= limits.characters || characters <= limits.characters + 16 * this.countGiven()) return;
    throw new TemplateLimitError(
      "makes too much text or data",
      `at most ${limits.characters + 16 * this.countGiven()} characters in any text or data`,
      `${characters} characters or more`,
    );
  }

  /**
   * @throws TemplateLimitError when a search may take this many comparisons: searches in longer texts would not end.
   */
  checkSearch(comparisons: number): void {
    const most = 1e9;
    if (comparisons > most)
      throw new TemplateLimitError(
        "searches too long a text in another",
        `at most ${most} comparisons of characters`,
        `up to ${comparisons}`,
      );
  }

  private look(): void {
    const { seconds, bytes } = this.limits;
    const now = performance.now();
    this.activeMs += Math.min(now - this.lastLook, longestGapMs);
    this.lastLook = now;
    this.units = 0;
    if (this.activeMs > seconds * 1000)
      throw new TemplateLimitError(
        "takes too long to render",
        `at most ${seconds} s for a rendering`,
        "no end by then",
      );
    const heap = getHeapStatistics().used_heap_size;
    this.heapBefore ??= heap;
    const grown = heap - this.heapBefore;
    if (grown > bytes && grown > bytes + 64 * this.countGiven())
      throw new TemplateLimitError(
        "takes too much memory",
        `at most ${Math.round(bytes / 2 ** 20)} MiB for a rendering`,
        `${Math.round(grown / 2 ** 20)} MiB`,
      );
  }

  /** Checked only when it matters: most renderings are below any limit. */
  private countGiven(): number {
    this.givenCharacters ??= countCharacters(this.given);
    return this.givenCharacters;
  }
}

function countCharacters(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let sum = 0;
  for (const [key, entry] of Object.entries(value)) sum += key.length + countCharacters(entry);
  return sum;
}
