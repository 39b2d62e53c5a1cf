// What a page loads: the core, all of it, gzipped. No part of it may come later. As it is published in one file, and the ES
// modules in a page's own bundle. Fails at the limits.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";
import { root } from "./entries.mjs";

const LIMIT_BYTES = 15_000;
/** esbuild gives a nested function no name that an outer one has, and inlines less: not below the limit yet, and no further from it. */
const ESBUILD_LIMIT_BYTES = 15_600;

const core = readFileSync(join(root, "dist/relayrouter.min.js"), "utf8");
const bundled = async (isMinified) => {
  const { outputFiles } = await build({
    entryPoints: [join(root, "dist/esm/index.js")],
    bundle: true,
    minify: isMinified,
    format: "esm",
    platform: "browser",
    write: false,
  });
  return outputFiles[0].text;
};
const { code } = await minify(await bundled(false), { module: true, ecma: 2022 });

const ways = [
  ["in one file", core, LIMIT_BYTES],
  ["bundled, and minified by terser", code, LIMIT_BYTES],
  ["bundled and minified by esbuild", await bundled(true), ESBUILD_LIMIT_BYTES],
];
for (const [way, text, limit] of ways) {
  const bytes = gzipSync(text, { level: 9 }).length;
  process.stdout.write(`core, all of it, ${way}: ${bytes} bytes gzipped (limit ${limit})\n`);
  if (bytes >= limit) process.exitCode = 1;
}
if (/\bimport\b/.test(core)) {
  process.stderr.write("it imports something\n");
  process.exitCode = 1;
}
