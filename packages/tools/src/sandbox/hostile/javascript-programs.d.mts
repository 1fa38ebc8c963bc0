/** @see javascript-programs.mjs */
export interface HostileProgram {
  name: string;
  language: string;
  code: string;
  ends: string;
  says?: RegExp;
  isSlow: boolean;
}
export const javascriptPrograms: HostileProgram[];
