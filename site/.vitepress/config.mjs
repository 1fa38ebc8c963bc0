import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { linkTerms, readTerms } from "../link-terms.mjs";
import { listModules } from "../list-modules.mjs";
import { groups } from "../sidebar.mjs";
import { slugify } from "../slugify.mjs";

// site/build.mjs writes the pages there: those of docs/, READMEs, and the API by typedoc.
const build = join(import.meta.dirname, "..", "build");
const pages = join(build, "pages");
const docs = join(import.meta.dirname, "..", "..", "docs");

const readTitle = (file) => /^# (.+)$/m.exec(readFileSync(file, "utf8"))?.[1].replaceAll("`", "");
const makeItem = (page) => ({ text: readTitle(join(docs, `${page}.md`)), link: `/${page}` });

const modules = listModules().map(({ name }) => name);
const linkModules = () => modules.map((name) => ({ text: name, link: `/api/${name}/` }));

/** The sidebar of each module of the API: all modules, and the names of this one, as typedoc wrote them: by kind. */
function listApi() {
  const sidebars = modules.map((name) => [
    `/api/${name}/`,
    [
      { text: name, link: `/api/${name}/`, items: listKinds(name) },
      { text: "Modules", items: linkModules() },
    ],
  ]);
  return Object.fromEntries([...sidebars, ["/api/", [{ text: "API", link: "/api/", items: linkModules() }]]]);
}

function listKinds(module) {
  const folder = join(pages, "api", module);
  const entries = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
  return entries
    .filter((entry) => entry.isDirectory() && !modules.includes(`${module}/${entry.name}`))
    .map((kind) => ({
      text: kind.name,
      collapsed: true,
      items: readdirSync(join(folder, kind.name)).map((file) => {
        const name = file.replace(/\.md$/, "");
        return { text: name, link: `/api/${module}/${kind.name}/${name}` };
      }),
    }));
}

export default defineConfig({
  title: "Cria",
  description: "Trains llama.cpp models to use your tools, by reinforcement learning over many turns, in TypeScript.",
  lang: "en",
  // Without one, browsers ask the server for a favicon.
  head: [["link", { rel: "icon", href: "data:," }]],
  base: process.env.DOCS_BASE ?? "/",
  srcDir: pages,
  outDir: join(build, "html"),
  cacheDir: join(build, "cache"),
  // Pictures stay files, which the style sheet knows by their names.
  vite: { build: { assetsInlineLimit: 0 } },
  // Sidebars stand in one file, not in each page.
  metaChunk: true,
  // The address of the site is not known here, and examples talk to this machine.
  ignoreDeadLinks: [/^https?:\/\/(localhost|127\.0\.0\.1)/],
  markdown: {
    anchor: { slugify },
    config: (markdown) =>
      linkTerms(markdown, readTerms(readFileSync(join(docs, "glossary.md"), "utf8")), {
        // Those that are generated have a term in every line.
        skip: ({ relativePath = "" }) => /^(glossary\.md|api\/|results\/)/.test(relativePath),
      }),
  },
  themeConfig: {
    outline: [2, 3],
    search: { provider: "local" },
    nav: [
      { text: "Start", link: "/start" },
      { text: "Commands", link: "/commands" },
      { text: "Config", link: "/config" },
      { text: "API", link: "/api/" },
      { text: "Glossary", link: "/glossary" },
    ],
    sidebar: {
      ...listApi(),
      "/": [
        ...groups.map(({ title, pages: names }) => ({
          text: title,
          collapsed: title === "Reference" || title === "More",
          items: [...names.map(makeItem), ...(title === "Reference" ? [{ text: "API", link: "/api/" }] : [])],
        })),
      ],
    },
  },
});
