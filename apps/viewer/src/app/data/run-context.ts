import { createContext, useContext } from "solid-js";
import type { RunDetail } from "../../api/index.js";
import type { Load } from "./load.js";

export const RunContext = createContext<{ id: string; load: Load<RunDetail> }>();

/** The run of the page: its id, and the server's data. */
export function useRun(): { id: string; load: Load<RunDetail> } {
  return useContext(RunContext)!;
}
