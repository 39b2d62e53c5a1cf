// What a page loads: the core in one file as it is published, all of it, gzipped. No part of it may come later. Fails at
// the limit. Beside it the same in a page's own bundle, by a bundler that minifies less well.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./entries.mjs";

const LIMIT_BYTES = 15_000;

const gzipped = (code) => gzipSync(code, { level: 9 }).length;
const core = readFileSync(join(root, "dist/relayrouter.min.js"));
const { outputFiles } = await build({
  entryPoints: [join(root, "dist/esm/index.js")],
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  write: false,
});
const bytes = gzipped(core);
const isWhole = !/\bimport\b/.test(core);
process.stdout.write(
  `core, all of it: ${bytes} bytes gzipped (limit ${LIMIT_BYTES}); bundled by esbuild: ${gzipped(outputFiles[0].contents)}\n`,
);
if (!isWhole) process.stderr.write("it imports something\n");
process.exitCode = bytes < LIMIT_BYTES && isWhole ? 0 : 1;
