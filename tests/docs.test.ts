// Pages that people read: their links, their place on the site, the types of their programs. That programs run is readme.test.ts's;
// configs and commands are apps/trainer/src/docs.test.ts's.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { listLinks } from "../scripts/publish-pages.mjs";
import { checkSite } from "../site/check-site.mjs";
import { linkTerms, readTerms } from "../site/link-terms.mjs";
import { listModules } from "../site/list-modules.mjs";
import { groups } from "../site/sidebar.mjs";
import { slugify } from "../site/slugify.mjs";
import { readSnippets } from "./snippets.js";

const root = join(import.meta.dirname, "..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const docs = readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"));

const all = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: root,
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((file) => !file.startsWith(".changeset/") && existsSync(join(root, file)));

/** Anchors of a page's headings. One that stands twice gets a number. */
function listAnchors(text: string): Set<string> {
  const anchors = new Set<string>();
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
  for (const [, heading] of prose.matchAll(/^#+ (.+)$/gm)) {
    const anchor = slugify(heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", ""));
    let unique = anchor;
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`;
    anchors.add(unique);
  }
  return anchors;
}

describe("links of all pages", () => {
  it("lead to files and headings that are there", () => {
    const dead = all.flatMap((page) =>
      listLinks(read(page))
        .filter(({ file, part }) => {
          const target = file === "" ? page : join(dirname(page), decodeURI(file));
          if (!existsSync(join(root, target))) return true;
          return part !== "" && (!target.endsWith(".md") || !listAnchors(read(target)).has(part));
        })
        .map(({ file, part }) => `${page}: ${file}${part && `#${part}`}`),
    );
    expect(dead).toEqual([]);
  });

  it("name pages of docs/ that are there, also outside of links", () => {
    const files = execFileSync("git", ["grep", "-lE", "docs/[a-z-]+\\.md", "--", ".", ":!CHANGELOG.md"], {
      cwd: root,
      encoding: "utf8",
    });
    const missing = files
      .trim()
      .split("\n")
      .filter((file) => existsSync(join(root, file)))
      .flatMap((file) =>
        [...read(file).matchAll(/(?<![\w.-]|node_modules\/)docs\/([a-z-]+\.md)/g)]
          .filter(([, name]) => !docs.includes(name!))
          .map(([place]) => `${file}: ${place}`),
      );
    expect(missing).toEqual([]);
  });
});

describe("the site", () => {
  it("has every page of docs/ in one place of its sidebar", () => {
    const pages = groups.flatMap((group) => group.pages).map((name) => `${name}.md`);
    expect(pages.toSorted()).toEqual(docs.filter((name) => name !== "README.md").toSorted());
  });

  it("has each page in docs/README.md too", () => {
    const linked = listLinks(read("docs/README.md")).map(({ file }) => file);
    expect(docs.filter((name) => name !== "README.md" && !linked.includes(name))).toEqual([]);
  });

  it("has the API of cria with its subpaths, and of each published package", () => {
    const modules = listModules();
    const published = readdirSync(join(root, "packages"))
      .map((name) => JSON.parse(read(`packages/${name}/package.json`)))
      .filter((found) => !found.private && found.exports?.["."])
      .map(({ name }) => name as string);
    expect(published).toEqual(expect.arrayContaining(["@cria/engine", "@cria/tools", "@cria/cluster"]));
    const subpaths = Object.keys(JSON.parse(read("apps/trainer/package.json")).publishConfig.exports)
      .filter((path) => path !== "./package.json")
      .map((path) => `cria${path.slice(1)}`);
    expect(modules.map(({ name }) => name).toSorted()).toEqual([...subpaths, ...published].toSorted());
    for (const { source } of modules) expect(existsSync(source)).toBe(true);
  });

  it("is complete if each module has a page, the search knows it, and nothing comes from elsewhere", () => {
    const html = mkdtempSync(join(tmpdir(), "cria-site-"));
    const write = (name: string, text: string) => {
      mkdirSync(dirname(join(html, name)), { recursive: true });
      writeFileSync(join(html, name), text);
    };
    try {
      write("start.html", '<a href="https://example.org">x</a><script src="/assets/app.js"></script>');
      expect(checkSite(html, ["cria/serve"])).toHaveLength(3);
      write("api/cria/serve/index.html", "");
      write("assets/chunks/@localSearchIndexroot.js", '{"0":"/start.html#a","1":"/api/cria/serve/#b"}');
      expect(checkSite(html, ["cria/serve"])).toEqual([]);
      write("start.html", '<link rel="stylesheet" href="https://fonts.example.org/x.css">');
      expect(checkSite(html, ["cria/serve"])).toEqual([expect.stringContaining("start.html")]);
    } finally {
      rmSync(html, { recursive: true });
    }
  });

  it("gives pages a title of their own, and keeps pictures that a page shows", () => {
    const titles = docs.map((name) => /^# (.+)$/m.exec(read(`docs/${name}`))![1]);
    expect(new Set(titles).size).toBe(docs.length);
    const shown = new Set(all.flatMap((page) => listLinks(read(page)).map(({ file }) => basename(file))));
    const pictures = readdirSync(join(root, "docs")).filter((name) => !name.endsWith(".md"));
    expect(pictures.filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe("the glossary", () => {
  const terms = readTerms(read("docs/glossary.md"));

  it("has each term once, in the order of the alphabet", () => {
    const names = terms.map(({ name }) => name.toLowerCase());
    expect(names.length).toBeGreaterThan(30);
    expect(names).toEqual([...new Set(names)].sort());
  });

  it("is linked from the first use of a term, but not in headings, links and code", () => {
    class Token {
      content = "";
      attrs: [string, string][] = [];
      children: Token[] = [];
      constructor(readonly type: string) {}
    }
    const make = (type: string, content = "") => Object.assign(new Token(type), { content });
    const inline = (...children: Token[]) => Object.assign(new Token("inline"), { children });
    let apply: (state: object) => void = () => {};
    const markdown = { core: { ruler: { push: (_: string, rule: typeof apply) => (apply = rule) } } };
    linkTerms(markdown as never, [{ name: "Policy", address: "/glossary#policy" }]);
    const tokens = [
      make("heading_open"),
      inline(make("text", "policy")),
      make("paragraph_open"),
      inline(make("link_open"), make("text", "policy"), make("link_close"), make("code_inline", "policy")),
      inline(make("text", "Policies learn; a policy samples.")),
    ];
    apply({ tokens, env: {}, Token });
    const types = tokens.map(({ children }) => children.map(({ type, content }) => content || type).join("|"));
    expect(types.filter((text) => text !== "")).toEqual([
      "policy",
      "link_open|policy|link_close|policy",
      "text|link_open|Policies|link_close| learn; a policy samples.",
    ]);
    expect(tokens.at(-1)!.children[1]!.attrs).toContainEqual(["href", "/glossary#policy"]);
  });
});

describe("programs of pages", () => {
  const pages = ["README.md", ...docs.map((name) => `docs/${name}`)];
  const folder = join(root, "tests", "build", "snippets");
  /** A program that those of other pages may import. */
  const shared = readSnippets(read("README.md")).find(({ name }) => name === "task.mts")!;

  /** Files that are not on the disk, and where each comes from. */
  const files = new Map<string, { text: string; page: string; line: number }>();
  for (const page of pages) {
    const place = join(folder, page.replaceAll(/\W/g, "-"));
    files.set(join(place, "task.mts"), { text: shared.text, page: "README.md", line: shared.line });
    for (const { language, name, text, types, line } of readSnippets(read(page)))
      if (language === "ts")
        files.set(join(place, name ?? `line-${line}.mts`), {
          text: `${text}export {};\n${types}`,
          page,
          line,
        });
  }

  it("have no errors of types", () => {
    const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile);
    const { options } = ts.parseJsonConfigFileContent({ ...config, files: [] }, ts.sys, root);
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile, getSourceFile } = host;
    host.directoryExists = undefined;
    host.fileExists = (name) => files.has(name) || fileExists(name);
    host.readFile = (name) => files.get(name)?.text ?? readFile(name);
    host.getSourceFile = (name, target, ...others) =>
      files.has(name)
        ? ts.createSourceFile(name, files.get(name)!.text, target, true)
        : getSourceFile.call(host, name, target, ...others);
    // Users install what a page names. Here these packages have it.
    const installed = ["apps/trainer/src/index.ts", "tests/clients/client.ts"].map((file) => join(root, file));
    host.resolveModuleNameLiterals = (literals, from, redirected, settings, source) =>
      literals.map((literal) => {
        const mode = ts.getModeForUsageLocation(source, literal, settings);
        const places = files.has(from) ? [from, ...installed] : [from];
        const found = places.map((place) =>
          ts.resolveModuleName(literal.text, place, settings, host, undefined, redirected, mode),
        );
        return found.find(({ resolvedModule }) => resolvedModule) ?? found[0]!;
      });
    const program = ts.createProgram([...files.keys()], options, host);
    const errors = [...files].flatMap(([name, { page, line }]) => {
      const source = program.getSourceFile(name)!;
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return found.map(({ start = 0, messageText }) => {
        const place = line + source.getLineAndCharacterOfPosition(start).line;
        return `${page}:${place}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
      });
    });
    expect(errors).toEqual([]);
  });

  it("are there", () => expect(files.size).toBeGreaterThan(30));
});

it("docs/ has files alone: each is in the tarball of cria", () => {
  for (const name of readdirSync(join(root, "docs"))) expect(statSync(join(root, "docs", name)).isFile()).toBe(true);
});
