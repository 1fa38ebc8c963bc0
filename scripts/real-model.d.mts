export declare const realModel: { folder: string; file: string; path: string; sha256: string; address: string };
export declare const realPython: string;
export declare const requirements: string;
export declare const missingModel: string | null;
