import { isAbsolute, relative, sep } from "node:path";

/** A file as configs in a folder name it: relative and never like a package's name, absolute where it lies far away. */
export function showPath(folder: string, path: string): string {
  const near = relative(folder, path);
  // A path through the root says less than the whole one, and breaks as easily.
  if (isAbsolute(near) || near.split(sep).filter((part) => part === "..").length > 3) return path;
  return near.startsWith(".") ? near : `./${near}`;
}
