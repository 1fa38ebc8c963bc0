// VitePress is installed only where the site is built.
declare module "vitepress";
declare module "vitepress/theme-without-fonts";
