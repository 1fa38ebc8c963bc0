import { render } from "solid-js/web";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/episode.css";
import "./styles/shades.css";
import { App } from "./app.js";
import { connectEvents } from "./data/events.js";
import { followTheme } from "./data/theme.js";
import { listenToKeys } from "./keys.js";

followTheme();
connectEvents();
listenToKeys();
render(() => <App />, document.getElementById("app")!);
