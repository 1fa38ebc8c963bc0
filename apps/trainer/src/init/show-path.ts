import { isAbsolute, relative, sep } from "node:path";

/** A file's path for configs in a folder: relative and never like a package's name, absolute for a distant file. */
export function showPath(folder: string, path: string): string {
  const near = relative(folder, path);
  // A relative path through the root is longer than the absolute one, and breaks as easily.
  if (isAbsolute(near) || near.split(sep).filter((part) => part === "..").length > 3) return path;
  return near.startsWith(".") ? near : `./${near}`;
}
