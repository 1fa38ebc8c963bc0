import { createContext, useContext } from "solid-js";
import type { RunDetail } from "../../api/index.js";
import type { Load } from "./load.js";

export const RunContext = createContext<{ id: string; load: Load<RunDetail> }>();

/** The run that the page is about: its id, and what the server says of it. */
export function useRun(): { id: string; load: Load<RunDetail> } {
  return useContext(RunContext)!;
}
