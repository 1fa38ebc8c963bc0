// The platforms that ready-made addons are published for. .github/workflows/prebuilds.yml builds and checks each.

/**
 * `name` is Node's platform and processor. `ownLibraries`: no package of node-llama-cpp has llama.cpp's libraries for it
 * in the pinned release, so they are compiled from its sources and come with the addon.
 */
export const targets = [
  { name: "linux-x64", platform: "linux", arch: "x64", ownLibraries: false },
  { name: "linux-arm64", platform: "linux", arch: "arm64", ownLibraries: false },
  { name: "darwin-arm64", platform: "darwin", arch: "arm64", ownLibraries: true },
  { name: "win32-x64", platform: "win32", arch: "x64", ownLibraries: true },
];

/** This machine. Others than the published ones compile the addon when it is installed. */
export const thisTarget = `${process.platform}-${process.arch}`;

/** @throws Error for a name without a platform and a processor. */
export function describeTarget(name) {
  const known = targets.find((target) => target.name === name);
  if (known) return known;
  const [, platform, arch] = /^(linux|darwin|win32)-(\w+)$/.exec(name) ?? [];
  if (platform === undefined)
    throw new Error(`"${name}" is no platform: expected one of ${targets.map((target) => target.name).join(", ")}`);
  return { name, platform, arch, ownLibraries: platform !== "linux" };
}
