import type { ImageRecord } from "@cria/core";
import { createSignal, Show } from "solid-js";
import { fileAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";

/** Images with sides of at most this many pixels are enlarged, with visible pixels. */
const TINY = 96;

const extensions: Record<ImageRecord["mimeType"], string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/bmp": "bmp",
  "image/gif": "gif",
};

/** An image of a conversation; a click enlarges it, and shrinks it again. */
export function Picture(props: { image: ImageRecord }) {
  const { id } = useRun();
  const [isLarge, setLarge] = createSignal(false);
  const [isMissing, setMissing] = createSignal(false);
  const size = () => `${props.image.width} × ${props.image.height}`;
  const name = () => `${props.image.hash}.${extensions[props.image.mimeType]}`;
  const isTiny = () => Math.max(props.image.width, props.image.height) <= TINY;
  return (
    <figure class="picture" classList={{ large: isLarge(), tiny: isTiny() }}>
      <Show when={!isMissing()} fallback={<p class="soft small">The image's file is not there.</p>}>
        <button
          type="button"
          aria-pressed={isLarge()}
          title={isLarge() ? "Show it small" : "Show it large"}
          onClick={() => setLarge(!isLarge())}
        >
          <img
            src={fileAddress(["runs", id, "images", name()])}
            alt={`${size()} pixels, ${props.image.hash.slice(0, 8)}`}
            width={props.image.width}
            height={props.image.height}
            loading="lazy"
            decoding="async"
            onError={() => setMissing(true)}
          />
        </button>
      </Show>
      <figcaption class="soft small">
        {size()} <span class="mono">{props.image.hash.slice(0, 8)}</span>
      </figcaption>
    </figure>
  );
}
