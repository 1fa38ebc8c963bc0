import type { HubError } from "@cria/core";
import { resolveModel } from "@cria/hub";
import { isAddress, readHubSettings } from "@cria/hub/internal";

/** Where a model lies, that of an address in the cache; null: nowhere yet. @throws HubError for what is no address. */
export async function findModelFile(path: string): Promise<string | null> {
  if (!isAddress(path)) return path;
  try {
    return await resolveModel(path, { settings: { ...readHubSettings(), offline: true } });
  } catch (error) {
    if ((error as HubError).code === "hub/offline") return null;
    throw error;
  }
}
