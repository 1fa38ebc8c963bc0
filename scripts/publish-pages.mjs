// The pages of a package in its tarball: README.md, and for `cria` the repository's README.md and docs/. Relative links
// of the repository have no target after `npm install`.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Pages and pictures of a package's tarball, and the files of the repository that they are. */
function listPages(folder) {
  if (folder !== "apps/trainer") return new Map([["README.md", `${folder}/README.md`]]);
  const docs = readdirSync(join(root, "docs")).map((name) => [`docs/${name}`, `docs/${name}`]);
  return new Map([["README.md", "README.md"], ...docs]);
}

/** Writes the pages of a package (`packages/engine`) into `out`, which has its other files. */
export function writePages(folder, out) {
  const pages = listPages(folder);
  for (const [page, source] of pages) {
    mkdirSync(dirname(join(out, page)), { recursive: true });
    if (!page.endsWith(".md")) cpSync(join(root, source), join(out, page));
    else
      writeFileSync(
        join(out, page),
        fitLinks(readFileSync(join(root, source), "utf8"), { page, source, folder, pages, out }),
      );
  }
}

/**
 * Points links to pages in the tarball there, and those to other packages to their pages on npm; of other links only
 * the text stays.
 */
function fitLinks(text, { page, source, folder, pages, out }) {
  const places = new Map([...pages].map(([place, file]) => [file, place]));
  const find = (target) => {
    const file = join(dirname(source), target);
    const place = places.get(file);
    if (place !== undefined) return relative(dirname(page), place);
    const own = relative(folder, file);
    if (!own.startsWith("..") && existsSync(join(out, own))) return relative(dirname(page), own);
    const [, name] = /^(packages\/[\w-]+|apps\/trainer|native)\/README\.md$/.exec(file) ?? [];
    return name === undefined ? null : `https://www.npmjs.com/package/${readName(name)}`;
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

/** Links and pictures of a page with relative targets. */
export function listRelativeLinks(text) {
  const links = [
    ...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)(?:#[^)\s]*)?\)/g),
    ...text.matchAll(/ src="(?!\w+:)([^"]+)"/g),
  ];
  return links.map(([, target]) => target);
}
