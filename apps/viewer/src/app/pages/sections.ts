import type { Component } from "solid-js";
import { EnvironmentPage } from "./environment-page.js";
import { LivePage } from "./live-page.js";
import { PromptsPage } from "./prompts-page.js";
import { RunPage } from "./run-page.js";
import { WorkersPage } from "./workers-page.js";

export interface Section {
  /** Path segment after the run in the address; "" is the run's first page. */
  section: string;
  /** Title of the tab and of the page. */
  title: string;
  /** Key that opens the section, typed after g. */
  key: string;
  /** Null: `run-pages.tsx` chooses the page by the rest of the address. */
  page: Component | null;
}

/** Sections of a run, in the order of their tabs. */
export const sections: readonly Section[] = [
  { section: "", title: "Overview", key: "o", page: RunPage },
  { section: "dumps", title: "Steps", key: "s", page: null },
  { section: "prompts", title: "Prompts", key: "p", page: PromptsPage },
  { section: "environment", title: "Environment", key: "e", page: EnvironmentPage },
  { section: "workers", title: "Workers", key: "w", page: WorkersPage },
  { section: "live", title: "Live", key: "l", page: LivePage },
];

export const findSection = (name: string): Section | undefined => sections.find(({ section }) => section === name);
