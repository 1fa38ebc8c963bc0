import { TokenizerError } from "@cria/core";
import { Template } from "@huggingface/jinja";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChatTemplate } from "./index.js";
import { parseTemplate } from "./parse-template.js";
import { defaultRenderLimits, type RenderLimits, TemplateLimitError } from "./render-limits.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const limits: RenderLimits = { ...defaultRenderLimits, characters: 2 ** 18, bytes: 2 ** 26 };
const tokens = { bos_token: "", eos_token: "" };
const render = (source: string, more: Partial<RenderLimits> = {}) =>
  new ChatTemplate(source, tokens, { ...limits, ...more }).render([{ role: "user", content: "hi" }]);

/** A text `s` of 2^17 letters a, for the templates below. */
const long =
  "{% set ns = namespace(s='a') %}{% for i in range(17) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{% set s = ns.s %}";
/** The same with 2^20 letters, for the default limits. */
const longest = long.replace("17", "20");
const deep = (open: string, close: string, times: number) => open.repeat(times) + close.repeat(times);

/** Endings of a rendering: a limit, by the text that describes it, or the code of another error. */
const limitTexts: Readonly<Record<string, RegExp>> = {
  time: / s for a rendering$/,
  memory: / MiB for a rendering$/,
  data: / characters in any text or data$/,
  search: / comparisons of characters$/,
  source: / characters of source$/,
  space: / characters of white space in a row$/,
};
function findEnding({ code, expected = "" }: TokenizerError): string {
  if (code !== "tokenizer/template-limit") return code.replace("tokenizer/", "");
  return Object.keys(limitTexts).find((name) => limitTexts[name]!.test(expected)) ?? expected;
}

const hostile: [name: string, source: string, endings: string[]][] = [
  ["a loop over a thousand million numbers", "{% for i in range(1000000000) %}x{% endfor %}", ["data"]],
  ["a range without an end", "{{ range(0, 2 ** 1000) }}", ["data"]],
  ["a range that counts down for ever", "{% for i in range(0, -1000000000, -1) %}x{% endfor %}", ["data"]],
  [
    "nested loops",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x{% endfor %}{% endfor %}{% endfor %}",
    ["time", "data", "memory"],
  ],
  [
    "nested loops that print nothing",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% if a == b + 7 %}{% endif %}{% endfor %}{% endfor %}",
    ["time"],
  ],
  ["a macro that calls itself", "{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}", ["render-failed"]],
  [
    "a macro that calls itself twice",
    "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ["time"],
  ],
  [
    "macros in loops",
    `{% for a in range(9999) %}{% macro f() %}${"{{ a }}".repeat(5000)}{% endmacro %}{% endfor %}`,
    ["time", "data", "memory"],
  ],
  [
    "a text that doubles",
    "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    ["data"],
  ],
  ["a text that doubles with +", `{% set s = 'ab' %}${"{% set s = s + s %}".repeat(60)}{{ s }}`, ["data"]],
  [
    "a list that doubles",
    "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l }}",
    ["data"],
  ],
  [
    "lists that hold one list twice",
    `{% set l = [1] %}${"{% set l = [l, l] %}".repeat(50)}{{ l | tojson }}`,
    ["data", "memory"],
  ],
  [
    "objects that hold one object twice",
    `{% set o = {} %}${"{% set o = {'a': o, 'b': o} %}".repeat(50)}{{ o }}`,
    ["data", "memory"],
  ],
  [
    "namespaces that are filled after they were put in lists",
    `${Array.from({ length: 50 }, (_, i) => `{% set n${i} = namespace() %}{% set l${i} = [n${i}, n${i}] %}`).join("")}${Array.from({ length: 49 }, (_, i) => `{% set n${i}.x = l${i + 1} %}`).join("")}{{ l0 | tojson }}`,
    ["data"],
  ],
  [
    "a namespace that holds itself",
    "{% set n = namespace() %}{% set n.a = [n, n] %}{{ n }}",
    ["data", "memory", "render-failed"],
  ],
  [
    "much text from a loop",
    `${long}{% for i in range(10000) %}{{ s }}{% endfor %}`,
    ["data", "memory", "render-failed"],
  ],
  ["joins with a long text", `${long}{{ range(9999) | join(s) }}`, ["data"]],
  ["joins the letters of a text with it", `${long}{{ s | join(s) }}`, ["data"]],
  ["joins by unpacked arguments", `${long}{{ range(9999) | join(*[s]) }}`, ["data"]],
  ["replaces each letter by a text", `${long}{{ s | replace('a', s) }}`, ["data", "search"]],
  ["replaces nothing by a text, as a method", `${long}{{ s.replace('', s) }}`, ["data"]],
  ["replaces by a method with a computed name", `${long}{{ s['rep' ~ 'lace']('', s) }}`, ["data"]],
  ["replaces by a method that was put away", `${long}{% set f = s.replace %}{{ f('', s) }}`, ["data"]],
  [
    "replaces in a filter block",
    `${long}{% filter replace('a', s) %}{{ s }}{% endfilter %}`,
    ["data", "memory", "search"],
  ],
  ["indents by a thousand million", "{{ 'a\nb' | indent(1000000000) }}", ["data"]],
  ["indents JSON by a million", "{{ [[[[1]]]] | tojson(indent=1000000) }}", ["data"]],
  ["separates JSON by long texts", `${long}{{ range(10000) | tojson(separators=(s, s)) }}`, ["data"]],
  [
    "searches a text that almost fits everywhere",
    `${longest}{% set half = 'b' ~ s[:600000] %}{% for i in range(9999) %}{% if half in s %}{% endif %}{% endfor %}`,
    ["search"],
  ],
  ["splits at a text that almost fits everywhere", `${longest}{{ s.split('b' ~ s[:600000]) }}`, ["search"]],
  [
    "keeps many long texts",
    `${long}{% set m = namespace(l=[]) %}{% for i in range(5000) %}{% set m.l = [m.l, (s ~ i) | upper] %}{% endfor %}`,
    ["data", "memory", "time"],
  ],
  ["complains at length", `${long}{{ raise_exception(s) }}`, ["render-failed"]],
  [
    "strips with a long set of characters",
    `${long}{{ (s ~ 'b').rstrip('c' ~ s) }}{{ undefined_function() }}`,
    ["render-failed"],
  ],
  ["a million opening brackets", `{{ ${deep("[", "]", 100_000)} }}`, ["bad-template"]],
  ["conditions in conditions", deep("{% if true %}", "{% endif %}", 10_000), ["bad-template", "render-failed"]],
  ["a source without an end", "a".repeat(300_000), ["source"]],
  ["white space that the parser takes quadratic time for", `${" ".repeat(200_000)}x`, ["space"]],
];

/** CPU time of this process since then, so that other work on the machine does not count. */
function measureCpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

describe("hostile chat templates", () => {
  it.each(hostile)("%s: an error, soon, and the process lives", (_, source, endings) => {
    const started = process.cpuUsage();
    let error: unknown;
    try {
      // A short limit for sources that only the clock can end; the usual one for the others.
      const seconds = endings[0] === "time" ? 0.1 : limits.seconds;
      render(source, { seconds, ...(source.startsWith(longest) ? defaultRenderLimits : {}) });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(TokenizerError);
    expect(endings).toContain(findEnding(error as TokenizerError));
    expect(String(error).length).toBeLessThan(2000);
    expect(measureCpuMs(started)).toBeLessThan(20_000);
  });

  it("keep many lists in names: an error", () => {
    const source = Array.from({ length: 5000 }, (_, i) => `{% set x${i} = range(20000) %}`).join("");
    // A list takes little memory and much time: with the usual limit it would take seconds to reach it.
    expect(() => render(source, { bytes: 2 ** 22 })).toThrow(
      expect.objectContaining({ code: "tokenizer/template-limit", expected: "at most 4 MiB for a rendering" }),
    );
  });

  it("are not tried again once they met a limit: the next rendering fails at once", () => {
    const template = new ChatTemplate(
      "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
      tokens,
      { ...limits, seconds: 0.1 },
    );
    const messages = [{ role: "user" as const, content: "hi" }];
    const attempt = () => template.render(messages);
    expect(attempt).toThrow(TemplateLimitError);
    const started = process.cpuUsage();
    const ended = expect.objectContaining({ expected: "at most 0.1 s for a rendering" });
    for (let i = 0; i < 100; i++) expect(attempt).toThrow(ended);
    // 100 renderings would take 10 s.
    expect(measureCpuMs(started)).toBeLessThan(3000);
  });

  it("may do more with larger limits", () => {
    const source = "{% for message in messages %}{{ message.content }}{{ message | tojson }}{% endfor %}";
    const content = "x".repeat(3 * defaultRenderLimits.characters);
    const text = new ChatTemplate(source, tokens, limits).render([{ role: "user", content }]);
    expect(text.length).toBeGreaterThan(2 * content.length);
  });
});

describe("templates within the limits", () => {
  const same = (source: string, variables: Record<string, unknown> = {}) => {
    const attempt = (run: () => string) => {
      try {
        return run();
      } catch (error) {
        return `refused: ${(error as Error).message}`;
      }
    };
    const ours = attempt(() => parseTemplate(source, defaultRenderLimits).render(variables));
    expect(ours, source).toBe(attempt(() => new Template(source).render(variables)));
    return ours;
  };

  it("print the same as the library, for each of its nodes", () => {
    const variables = {
      text: "  one\ntwo three ",
      list: [3, 1, 2],
      object: { b: [1, { c: null }], a: "x" },
      none: undefined,
    };
    delete variables.none;
    const printed = [
      "{{ text.split() | tojson }}{{ text.split('\n') }}{{ text.split(' ', 1)[0] }}{{ text['split']('w') }}",
      "{{ text.replace('o', '0') }}{{ text | replace('o', '0', count=1) }}{{ text.replace('', '-', 2) }}",
      "{{ list | join(', ') }}{{ list | join }}{{ 'abc' | join('-') }}{{ list | join(*['/']) }}{{ list | join(separator='+') }}",
      "{{ text | indent(2) }}{{ text | indent(width=3, first=true) }}{{ object | tojson(indent=2) }}",
      "{{ object | tojson(**{'sort_keys': true}) }}{{ object | tojson(separators=(',', ':')) }}{{ object }}",
      "{{ 'on' in text }}{{ 9 not in list }}{{ 'a' in object }}{{ 'x' in missing }}{{ 'a' in ['a'] }}",
      "{% for k, v in object | dictsort %}{{ k }}={{ v }}{% endfor %}{{ object.items() }}{{ object['a'] }}{{ list[1:] }}{{ text[2:5] }}",
      "{% macro f(x, y=2) %}{{ x }}{{ y }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 3, 4, z=5) }}",
      "{% macro g() %}[{{ caller('c') }}]{% endmacro %}{% call(x) g() %}{{ x }}!{% endcall %}",
      "{% filter upper %}a{{ text }}{% endfilter %}{% filter replace('a', 'b') %}banana{% endfilter %}{% filter indent(1) %}a\nb{% endfilter %}",
      "{{ range(3) }}{{ range(2, 5) }}{{ range(5, 0, -2) }}{{ range(1, 1) }}{{ range(1, 2, 0) }}",
      "{% set ns = namespace(a=1) %}{% for i in list if i > 1 %}{% set ns.a = ns.a + i %}{{ loop.index }}{{ loop.last }}{% else %}no{% endfor %}{{ ns.a }}",
      "{% set ns = namespace() %}{% set ns.split = 'a' %}{% set ns.replace = ns.split %}{{ ns.replace }}{{ ns.split }}",
      "{{ raise_exception('no ' ~ list) }}",
      "{{ missing.member }}",
      "{{ 5['split'] }}{{ text[object] }}",
      "{{ strftime_now('%Y-%m %% %q') }}{{ True }}{{ None }}{{ false }}",
      "{% set x = [] | first %}{{ x is defined }}{{ list | sort(reverse=true) }}{{ list | sort | first }}",
      "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% if x == 3 %}{% break %}{% endif %}{% endfor %}",
    ].map((source) => same(source, variables));
    expect(printed.filter((text) => text.startsWith("refused"))).toEqual([
      expect.stringContaining("step must not be zero"),
      expect.stringContaining("no "),
      expect.stringContaining("refused"),
    ]);
  });

  it("a macro finds its further arguments also where a loop takes them", () => {
    const source = "{% macro f() %}{% for v in varargs %}<{{ v }}>{% endfor %}{% endmacro %}{{ f(1, 2) }}";
    expect(same(source)).toBe("<1><2>");
  });

  it("print the same as the library, for texts of any kind", () => {
    const source =
      "{{ a.replace(b, c) }}|{{ a | replace(b, c) }}|{{ b in a }}|{{ a | tojson }}|{{ [a, b] | join(c) }}|{{ a | indent(3) }}|{{ a.split('x') }}";
    fc.assert(
      fc.property(fc.record({ a: fc.string({ unit: "grapheme" }), b: fc.string(), c: fc.string() }), (variables) => {
        same(source, variables);
      }),
      { numRuns: 100 },
    );
  });
});
