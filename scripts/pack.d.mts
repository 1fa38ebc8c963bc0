export const packages: string[];
export function packAll(out: string, options?: { prebuilds?: string }): string[];
export function packTarget(target: string, out: string): string[];
export function takePrebuilds(folder: string, out: string): string[];
export function listPrebuilds(warn: (text: string) => void): string[];
export function listPlatformPackages(names: string[], version: string): Record<string, string>;
interface PlatformManifest {
  name: string;
  version: string;
  os: string[];
  cpu: string[];
  libc?: string[];
  main: string;
}
export function describePrebuild(target: string): PlatformManifest & { dependencies?: Record<string, string> };
export function describeVision(target: string): PlatformManifest;
