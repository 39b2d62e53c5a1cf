// What the core costs a page: bundled, minified, gzipped. Fails above the limit.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { entries } from "./entries.mjs";

const LIMIT_BYTES = 15_000;
const PRIVATE = /^_[a-z]/;

const { outputFiles } = await build({
  entryPoints: [entries.index],
  bundle: true,
  minify: true,
  mangleProps: PRIVATE,
  format: "esm",
  platform: "browser",
  target: "es2022",
  write: false,
});
const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;
process.stdout.write(`core: ${bytes} bytes gzipped, limit ${LIMIT_BYTES}\n`);
process.exitCode = bytes < LIMIT_BYTES ? 0 : 1;
