export const packages: string[];
export function packAll(out: string): string[];
export function listPrebuilds(warn: (text: string) => void): string[];
interface PlatformManifest {
  name: string;
  version: string;
  os: string[];
  cpu: string[];
}
export function describePrebuild(arch: string): PlatformManifest & { dependencies: Record<string, string> };
export function describeVision(arch: string): PlatformManifest & { main: string };
