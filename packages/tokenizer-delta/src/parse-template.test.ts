import { Template } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { chatTemplate } from "../../../models/src/policy-prompt.js";
import { ChatTemplate } from "./index.js";
import { conversations } from "./matrix/conversations.js";
import { readTemplateTable } from "./matrix/template-table.js";
import { defaultRenderLimits, TemplateLimitError } from "./render-limits.js";
import { createLlamaTemplate, listBundledTemplates, readBundledTemplate } from "./testing/index.js";

/** The output of an engine, or that it refuses; the engines' error messages need not agree. */
function attempt(render: () => string): string {
  try {
    return render();
  } catch {
    return "refused";
  }
}

async function compare(source: string): Promise<{ differences: string[]; rendered: number }> {
  const template = new ChatTemplate(source, { bos_token: "<s>", eos_token: "</s>" });
  const llama = await createLlamaTemplate(source);
  const differences: string[] = [];
  let rendered = 0;
  for (const [name, { messages, tools }] of Object.entries(conversations)) {
    for (const addGenerationPrompt of [false, true]) {
      const options = { tools, addGenerationPrompt, kwargs: { date_string: "26 Jul 2024" } };
      const ours = attempt(() => template.render(messages, options));
      const theirs = attempt(() => llama.render(template.makeVariables(messages, options)));
      if (ours !== theirs) differences.push(ours === "refused" ? "refused" : `${name}: other text`);
      else if (ours !== "refused") rendered++;
    }
  }
  return { differences, rendered };
}

describe("rendering, against llama.cpp's own Jinja engine", () => {
  const refusing = readTemplateTable("## Templates that do not render").map(([template]) => template!);

  it.each(listBundledTemplates().filter((name) => !refusing.includes(name)))("%s prints the same", async (name) => {
    const { differences, rendered } = await compare(readBundledTemplate(name));
    expect(differences).toEqual([]);
    expect(rendered).toBeGreaterThan(0);
  });

  it("prints a repeated question once for each time", async () => {
    const source = "{% for m in messages %}{{ m.content }}{% if m == messages[-1] %}!{% endif %} {% endfor %}";
    const messages = ["a", "b", "a"].map((content) => ({ role: "user" as const, content }));
    const template = new ChatTemplate(source);
    expect(template.render(messages)).toBe("a! b a! ");
    expect((await createLlamaTemplate(source)).render(template.makeVariables(messages))).toBe("a! b a! ");
  });

  it("compares contents of lists and mappings at any depth, as Python does; llama.cpp compares one level", () => {
    const source =
      "{{ 1 if [{'a': ['x', 1]}] == [{'a': ['x', 1]}] else 0 }}{{ 1 if [{'a': [1]}] == [{'a': [2]}] else 0 }}";
    expect(new ChatTemplate(source).render([])).toBe("10");
  });

  it("the embedded policy's template prints the same", async () => {
    expect((await compare(chatTemplate)).differences).toEqual([]);
  });

  it.each(refusing)("%s is refused at least once, and never prints other text", async (name) => {
    const { differences } = await compare(readBundledTemplate(name));
    expect(new Set(differences)).toEqual(new Set(["refused"]));
  });
});

describe("parseTemplate", () => {
  it("differs from the library alone only where that differs from llama.cpp", async () => {
    const changed: string[] = [];
    for (const name of ["Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen-QwQ-32B", "google-gemma-4-31B-it"]) {
      const source = readBundledTemplate(name);
      const ours = new ChatTemplate(source, { bos_token: "", eos_token: "" });
      const alone = new Template(source);
      for (const [conversation, { messages, tools }] of Object.entries(conversations)) {
        const text = alone.render(ours.makeVariables(messages, { tools }));
        if (text !== ours.render(messages, { tools })) changed.push(`${name}: ${conversation}`);
      }
    }
    // Both strip newlines from the assistant's text; only the library also strips its tab and its spaces.
    expect(changed).toEqual(["Qwen-Qwen3-0.6B: whitespace", "Qwen-QwQ-32B: whitespace"]);
  });

  it.each([
    [
      "{{ ('--a-' ).lstrip('-') }}|{{ '--a-'.rstrip('-') }}|{{ '--a-'.strip('-') }}|{{ ' \n a '.lstrip('\n') }}",
      "a-|--a|a| \n a ",
    ],
    ["{% set tag = '<a{}>' %}{{ tag.format(':b') }}|{{ '{} {}'.format('x', 'y') }}", "<a:b>|x y"],
    ["{{ ' a '.strip() }}|{% for x in nothing %}{{ x }}{% endfor %}|{{ nothing | length }}", "a||0"],
    [
      "{% for x in [1, 2, 3] if x > 1 %}{{ x }}{% endfor %}{% for x in nothing if x > 1 %}{{ x }}{% else %}!{% endfor %}",
      "23!",
    ],
    [
      "{{ 1 if {'a': 'x'} == {'a': 'x'} else 0 }}|{{ 1 if [1, 2] == [1, 3] else 0 }}|{{ 1 if {'a': 1} != {'a': 1, 'b': 2} else 0 }}|{{ 1 if [] == {} else 0 }}",
      "1|0|1|0",
    ],
    [
      "{{ 1 if '1' == 1 else 0 }}|{{ 1 if '' == 0 else 0 }}|{{ 1 if 1 == 1.0 else 0 }}|{{ 1 if 'a' == 'a' else 0 }}|{{ 1 if nothing == 'a' else 0 }}",
      "0|0|1|1|0",
    ],
    ["{{ none | string }}|{{ true | string }}|{{ 3 | string }}|{{ 'a' | string }}", "None|True|3|a"],
    ["{{ {'a': 1}[nothing] }}|{{ 1 if {'a': 1}[none] is defined else 0 }}|{{ {'a': {'b': 1}}['a']['b'] }}", "|0|1"],
    [
      "{{ 1 if nothing is iterable else 0 }}|{{ 1 if nothing is not iterable else 0 }}|{{ 1 if 3 is iterable else 0 }}",
      "1|0|0",
    ],
    ["{{ 1 if 'a' in nothing else 0 }}|{{ 1 if 'a' not in nothing else 0 }}|{{ nothing | upper }}", "0|1|"],
    [
      "{% set ns = namespace(l=['a', 'b']) %}{% set _ = ns.l.append('c') %}{{ ns.l.pop(0) }}{{ ns.l.pop() }}{{ ns.l | length }}",
      "ac1",
    ],
    [
      "{% set d = {1024: 'b', 512: 'a', 16384: 'c'} %}{% for k, v in d | dictsort %}{{ k + 1 }}{{ v }} {% endfor %}{{ d[512] }}",
      "513a 1025b 16385c a",
    ],
  ])("%s", async (source, expected) => {
    expect(new ChatTemplate(source).render([])).toBe(expected);
    expect((await createLlamaTemplate(source)).render({})).toBe(expected);
  });

  it("the filter string writes lists and mappings as Python's str() does", () => {
    // Values of CPython 3.11.
    const text = (source: string) => new ChatTemplate(`{{ ${source} | string }}`).render([]);
    expect(text(`['a', 1, none, 2.5, 5.0, "it's", 'say "x" it\\'s']`)).toBe(
      `['a', 1, None, 2.5, 5.0, "it's", 'say "x" it\\'s']`,
    );
    expect(text(`['a\\\\b\\n\u00a0é🦙\u0001']`)).toBe(`['a\\\\b\\n\\xa0é🦙\\x01']`);
    expect(text(`{'a': {'b': [false]}}`)).toBe(`{'a': {'b': [False]}}`);
    expect(new ChatTemplate("{{ ['a', none] | upper }}").render([])).toBe("['A', NONE]");
  });

  it("looks for lists and for undefined values in lists, as Python does; llama.cpp refuses", () => {
    const source = "{{ 1 if ['a'] in (['b'], ['a']) else 0 }}{{ 1 if ['a'] in ('a', 'b') else 0 }}";
    expect(new ChatTemplate(source).render([])).toBe("10");
    expect(new ChatTemplate("{{ 1 if nothing in ('a', 'b') else 0 }}").render([])).toBe("0");
  });

  it("format() is refused where it is given more than texts for {}", () => {
    for (const source of [
      "'{}'.format()",
      "'{}'.format('a', 'b')",
      "'{0}'.format('a')",
      "'{:>5}'.format('a')",
      "'{}'.format(1)",
    ])
      expect(() => new ChatTemplate(`{{ ${source} }}`).render([]), source).toThrow(
        expect.objectContaining({ code: "tokenizer/render-failed" }),
      );
  });

  it("counts texts in a list as one text, and ends for a list in itself", () => {
    const limits = { ...defaultRenderLimits, characters: 100_000 };
    const render = (source: string) => new ChatTemplate(source, {}, limits).render([]);
    const grow = "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set _ = ns.l.append(long) %}{% endfor %}";
    expect(() => render(`{% set long = '${"x".repeat(1000)}' %}${grow}`)).toThrow(TemplateLimitError);
    expect(() => render(`{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}`)).toThrow();
  });

  it("gives tools under SmolLM3's name for them", () => {
    const tools = [{ type: "function" as const, function: { name: "f", description: "d", parameters: {} } }];
    const render = (source: string, kwargs = {}) => new ChatTemplate(source).render([], { tools, kwargs });
    expect(render("{% for t in xml_tools %}{{ t | string }}{% endfor %}")).toBe(
      "{'type': 'function', 'function': {'name': 'f', 'description': 'd', 'parameters': {}}}",
    );
    expect(render("{{ xml_tools }}", { xml_tools: "mine" })).toBe("mine");
  });
});
