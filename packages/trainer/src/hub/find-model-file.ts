import type { HubError } from "@cria/core";
import { resolveModel } from "@cria/hub";
import { isAddress, readHubSettings } from "@cria/hub/internal";

/**
 * Path of a model's file, for an address in the cache; null: it does not exist yet. @throws HubError for an invalid
 * address.
 */
export async function findModelFile(path: string): Promise<string | null> {
  if (!isAddress(path)) return path;
  try {
    return await resolveModel(path, { settings: { ...readHubSettings(), offline: true } });
  } catch (error) {
    if ((error as HubError).code === "hub/offline") return null;
    throw error;
  }
}
