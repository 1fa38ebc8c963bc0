import { defineConfig } from "vite";
import solid from "vite-plugin-solid";

export default defineConfig({
  // Relative addresses: the app also runs from a static folder.
  base: "./",
  plugins: [solid()],
  build: {
    target: "es2022",
    // Browsers that know light-dark(), for the two themes.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // Its inline script is forbidden by the content security policy.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
