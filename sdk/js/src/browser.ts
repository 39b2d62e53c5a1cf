/** One file for pages without a bundler: the core, the segmenter, the render helper and the stores of browsers. */

export * from "./index.js";
export * from "./render/index.js";
export * from "./segmenter/index.js";
export * from "./stores/index.js";
