import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Lists defects of a built site: a missing page of a module, a page that the search lacks, or a file that is loaded from another host
 * (the site works offline). VitePress itself refuses dead links.
 * @param {string} html folder of the built site
 * @param {readonly string[]} modules names of the API's modules; empty: it was built without the API
 */
export function checkSite(html, modules) {
  const chunks = join(html, "assets", "chunks");
  const index = existsSync(chunks) ? readdirSync(chunks).find((name) => name.includes("localSearchIndex")) : undefined;
  const search = index === undefined ? "" : readFileSync(join(chunks, index), "utf8");
  const pages = readdirSync(html, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
  const missing = modules.filter((name) => !pages.includes(join("api", name, "index.html")));
  const unfound = ["/start.html", ...modules.map((name) => `/api/${name}/`)].filter(
    (address) => !search.includes(`${address}#`),
  );
  const foreign = pages.flatMap((page) =>
    [
      ...readFileSync(join(html, page), "utf8").matchAll(
        /<(?:script|img|link)\b[^>]*?\b(?:src|href)="(?:https?:)?\/\/[^"]+"/g,
      ),
    ].map(([tag]) => `${page} loads ${tag}`),
  );
  return [
    ...missing.map((name) => `the module ${name} has no page`),
    ...unfound.map((address) => `the search does not find ${address}`),
    ...foreign,
  ];
}
