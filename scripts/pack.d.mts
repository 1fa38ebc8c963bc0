export const packages: string[];
export function packAll(out: string): string[];
export function listPrebuilds(warn: (text: string) => void): string[];
export function describePrebuild(arch: string): {
  name: string;
  version: string;
  os: string[];
  cpu: string[];
  dependencies: Record<string, string>;
};
