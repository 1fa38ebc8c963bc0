// @ts-nocheck temporary
export const startViewer = async (folder: string) => (await import("/tmp/vmock/server2.mjs")).serve(folder);
