import { CriaError } from "./cria-error.js";

/** An error of a model hub: addresses, downloads, the cache. */
export class HubError extends CriaError {}
