// What the core costs a page, bundled by a bundler that makes chunks, minified and gzipped. Fails above the limit.
// Beside it what is loaded later, when the network is not good: see src/load_later.ts.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { entries } from "./entries.mjs";

const LIMIT_BYTES = 15_000;

const { outputFiles, metafile } = await build({
  entryPoints: { index: entries.index },
  bundle: true,
  minify: true,
  mangleProps: /^_[a-z]/, // as scripts/build.mjs
  format: "esm",
  splitting: true,
  outdir: "out",
  platform: "browser",
  target: "es2022",
  metafile: true,
  write: false,
});

/** An output and everything that it imports at once. */
function closure(name, seen = new Set()) {
  seen.add(name);
  for (const { path, kind } of metafile.outputs[name].imports) {
    if (kind === "import-statement" && !seen.has(path)) closure(path, seen);
  }
  return seen;
}

const core = closure("out/index.js");
const sizeOf = (isIn) =>
  outputFiles
    .filter(({ path }) => isIn([...core].some((name) => path.endsWith(name.slice("out".length)))))
    .reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0);
const bytes = sizeOf((isCore) => isCore);
process.stdout.write(
  `core: ${bytes} bytes gzipped (limit ${LIMIT_BYTES}); loaded later: ${sizeOf((isCore) => !isCore)}\n`,
);
process.exitCode = bytes < LIMIT_BYTES ? 0 : 1;
