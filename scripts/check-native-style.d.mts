export const FORMATTER: string;
export const TIDY: string;
export const MOST_CHANGED: number;

export function isInstalled(program: string): boolean;
export function listFiles(): string[];
export function checkFormat(options?: {
  files?: string[];
  write?: boolean;
}): Promise<{ files: number; problems: string[] }>;
export function listChanged(folder?: string): string[];
export function selectUnits(files: string[], units: string[]): string[];
export function tidyUnit(unit: string, database: string): Promise<string>;
export function checkTidy(options: { whole: boolean }): Promise<{ units: number; left: number; problems: string[] }>;
