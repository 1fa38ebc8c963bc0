import { resolve } from "node:path";
import { ToolError, type ToolSchema } from "@cria/core";
import { z } from "zod";
import { BaseTool, type ExecuteOptions, type ToolResult } from "../base-tool.js";
import { defineToolSchema } from "../schema.js";
import type { ToolConfigEntry } from "../tool-config-entry.js";
import { HttpRetriever } from "./http-retriever.js";
import { LocalRetriever } from "./local-retriever.js";
import { formatPassages, type Retriever } from "./passage.js";

interface SearchConfig {
  /** A folder of text files, relative to the config file. */
  folder?: string;
  extensions?: string[];
  max_chars?: number;
  /** A server that speaks Search-R1's format. */
  retrieval_service_url?: string;
  topk?: number;
  /** Seconds for one request. */
  timeout?: number;
  default_timeout?: number;
  retries?: number;
  /** Requests at once. */
  num_workers?: number;
}

/** Searches for passages: `search({ query_list: ["..."] })`. It keeps no state for a trajectory. */
export class SearchTool extends BaseTool {
  constructor(
    private readonly retriever: Retriever,
    config: { topk?: number } = {},
    schema?: ToolSchema,
  ) {
    const queries = z.array(z.string()).min(1).describe("What to search for; each query has results of its own.");
    super(
      schema ?? defineToolSchema("search", "Searches for passages of text.", z.object({ query_list: queries })),
      config,
    );
  }

  async execute(
    _instanceId: string,
    parameters: Record<string, unknown>,
    { signal, topk = this.config.topk }: ExecuteOptions = {},
  ): Promise<ToolResult> {
    const given = parameters.query_list ?? parameters.queries ?? parameters.query;
    const queries = (Array.isArray(given) ? given : [given]).map(String);
    const found = await this.retriever.search(queries, Number(topk ?? 3), signal);
    const total = found.reduce((sum, passages) => sum + passages.length, 0);
    return {
      response: { text: found.map(formatPassages).join("\n---\n") },
      reward: 0,
      metrics: { search_queries: queries.length, search_results: total },
    };
  }
}

/** The search tool of a config entry. @throws ToolError when it names neither a folder nor a server. */
export function createSearchTool({ config = {}, tool_schema }: ToolConfigEntry, baseFolder: string): SearchTool {
  const known = config as SearchConfig;
  return new SearchTool(makeRetriever(known, baseFolder), known, tool_schema);
}

function makeRetriever(config: SearchConfig, baseFolder: string): Retriever {
  if (config.retrieval_service_url) {
    return new HttpRetriever(config.retrieval_service_url, {
      timeoutS: config.timeout ?? config.default_timeout,
      retries: config.retries,
      maxConcurrent: config.num_workers,
    });
  }
  if (config.folder) {
    return new LocalRetriever(resolve(baseFolder, config.folder), {
      extensions: config.extensions,
      maxChars: config.max_chars,
    });
  }
  throw new ToolError("has nothing to search", {
    code: "tool/bad-config",
    subject: "config of the search tool",
    expected: "folder: <text files>, or retrieval_service_url: <server>",
    received: JSON.stringify(config),
  });
}
