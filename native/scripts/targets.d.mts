export interface Target {
  name: string;
  platform: NodeJS.Platform;
  arch: string;
  ownLibraries: boolean;
}
export const targets: Target[];
export const thisTarget: string;
export function describeTarget(name: string): Target;
