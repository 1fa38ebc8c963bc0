// The pages of the repository elsewhere: in a package's tarball (README.md, and of `cria` the repository's README.md and docs/), and
// on the site. A link leads to the page's new place; what lies beside it in the repository alone is no link there.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @typedef {[page: string, source: string]} Page */

/** Pages and pictures of a package's tarball, and the files of the repository that they are. @returns {Map<string, string>} */
function listPages(folder) {
  if (folder !== "apps/trainer") return new Map([["README.md", `${folder}/README.md`]]);
  /** @type {Page[]} */
  const docs = readdirSync(join(root, "docs")).map((name) => [`docs/${name}`, `docs/${name}`]);
  return new Map([["README.md", "README.md"], ...docs]);
}

/** Pages and pictures of the site, and the files of the repository that they are. */
export function listSitePages() {
  /** @type {Page[]} */
  const docs = readdirSync(join(root, "docs")).map((name) => [
    name === "README.md" ? "index.md" : name,
    `docs/${name}`,
  ]);
  /** @type {Page[]} */
  const readmes = ["packages", "examples"].flatMap((kind) =>
    readdirSync(join(root, kind)).map(
      (name) => /** @type {Page} */ ([`${kind}/${name}.md`, `${kind}/${name}/README.md`]),
    ),
  );
  /** @type {Page[]} */
  const results = readdirSync(join(root, "scripts", "nightly"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => [`results/${name}`, `scripts/nightly/${name}`]);
  /** @type {Page[]} */
  const others = [
    ["deploy.md", "deploy/README.md"],
    ["contributing.md", "CONTRIBUTING.md"],
  ];
  return new Map([...docs, ...readmes, ...results, ...others].filter(([, source]) => existsSync(join(root, source))));
}

/** Writes the pages of a package (`packages/engine`) into `out`, which has its other files. */
export function writePages(folder, out) {
  // To what else the tarball has, and to the page of another package on npm.
  const findElsewhere = (file, page) => {
    const own = relative(folder, file);
    if (!own.startsWith("..") && existsSync(join(out, own))) return relative(dirname(page), own);
    const [, name] = /^(packages\/[\w-]+|apps\/trainer|native)\/README\.md$/.exec(file) ?? [];
    return name === undefined ? null : `https://www.npmjs.com/package/${readName(name)}`;
  };
  copyPages(listPages(folder), out, findElsewhere);
}

/** Writes the pages of the site into `out`. */
export function writeSitePages(out) {
  copyPages(listSitePages(), out, () => null);
}

/** @param findElsewhere gives the address of a file that is no page; null: the link's text stays. */
function copyPages(pages, out, findElsewhere) {
  for (const [page, source] of pages) {
    mkdirSync(dirname(join(out, page)), { recursive: true });
    if (!page.endsWith(".md")) cpSync(join(root, source), join(out, page));
    else
      writeFileSync(
        join(out, page),
        fitLinks(readFileSync(join(root, source), "utf8"), { page, source, pages, findElsewhere }),
      );
  }
}

function fitLinks(text, { page, source, pages, findElsewhere }) {
  const places = new Map([...pages].map(([place, file]) => [file, place]));
  const find = (target) => {
    const file = join(dirname(source), target);
    const place = places.get(file) ?? places.get(join(file, "README.md"));
    return place === undefined ? findElsewhere(file, page) : relative(dirname(page), place);
  };
  return text.replace(
    /(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)/g,
    (_, picture, words, target, part = "") => {
      const found = find(target);
      if (found !== null) return `${picture}[${words}](${found}${part})`;
      return picture ? "" : words;
    },
  );
}

function readName(folder) {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")).name;
}

/** Links and pictures of a page that lead to parts of it, or to files beside it: `file` ("": the page itself) and `part` ("": its beginning). */
export function listLinks(text) {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "").replaceAll(/`[^`\n]*`/g, "");
  const links = [
    ...prose.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g),
    ...prose.matchAll(/ src="(?!\w+:)([^"]+)"/g),
  ];
  return links.map(([, file, part = ""]) => ({ file, part }));
}
