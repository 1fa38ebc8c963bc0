import { type JSX, Match, Show, Switch } from "solid-js";
import type { Load } from "../data/load.js";
import type { RequestError } from "../data/request.js";

/** Loaded data, or the reason why it is missing. */
export function Loaded<T>(props: { load: Load<T>; children: (data: () => T) => JSX.Element }) {
  return (
    <Switch fallback={<Bones />}>
      <Match when={props.load.error()}>{(error) => <Problem error={error()} again={props.load.again} />}</Match>
      <Match when={props.load.data() !== undefined}>{props.children(() => props.load.data()!)}</Match>
    </Switch>
  );
}

export function Problem(props: { error: RequestError; again?: () => void }) {
  return (
    <div class="notice error" role="alert">
      <strong>{props.error.message}</strong>
      <Show when={props.error.remedy}>
        <p class="soft">{props.error.remedy}</p>
      </Show>
      <Show when={props.again}>
        <p>
          <button type="button" onClick={() => props.again!()}>
            Try again
          </button>
        </p>
      </Show>
    </div>
  );
}

export function Bones() {
  return (
    <div class="bones" role="status" aria-label="Loading">
      <i />
      <i />
      <i />
    </div>
  );
}

/** @param props.page true if it is the page's only content. */
export function Empty(props: { title: string; children?: JSX.Element; page?: boolean }) {
  return (
    <div class="empty">
      <Show when={props.page} fallback={<strong>{props.title}</strong>}>
        <h1>{props.title}</h1>
      </Show>
      <div>{props.children}</div>
    </div>
  );
}
