export function cutFunction(source: string): string;
export function readMetalSource(): string;
export function writeProgram(supports: string): string;
export function buildMetalOperations(supports?: string): string;
