// dist/: ES modules, CommonJS and types of every entry point, and one file for pages without a bundler.
// Peer dependencies stay outside.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { build } from "esbuild";
import { minify } from "terser";
import { entries, root } from "./entries.mjs";
import { MANGLED } from "./internal_names.mjs";

const common = { bundle: true, mangleProps: MANGLED, packages: "external", target: "es2022", logLevel: "warning" };
const everywhere = { ...common, entryPoints: entries, platform: "neutral" };
// Beside what is there, and put in its place when it is whole: somebody may be running that.
const dist = join(root, `dist.${process.pid}.next`);

/** Nothing unsafe. */
const SMALLEST = { ecma: 2022, module: true, passes: 5, lhs_constants: false };
/** To be minified again: what esbuild has inlined functions into comes out larger than it was. */
const FOR_BUNDLERS = { ...SMALLEST, reduce_funcs: false };

/** Writes it with its map to the sources. */
async function squeeze(path, text, map, compress) {
  const sourceMap = { content: map, filename: basename(path), url: `${basename(path)}.map`, includeSources: true };
  const { code, map: made } = await minify(text, { module: true, ecma: 2022, compress, sourceMap });
  writeFileSync(path, code);
  writeFileSync(`${path}.map`, made);
}

process.on("exit", () => rmSync(dist, { recursive: true, force: true })); // also when it fails

const sources = (folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && path !== "browser.ts")
    .map((path) => join(folder, path));

rmSync(dist, { recursive: true, force: true });
// The core alone in one file, as small as it gets: what scripts/size.mjs measures. The others take over its names.
const { outputFiles, mangleCache } = await build({
  ...common,
  mangleCache: {},
  entryPoints: [entries.index],
  minify: true,
  charset: "utf8",
  format: "esm",
  platform: "browser",
  write: false,
  sourcemap: "external",
  outfile: join(dist, "relayrouter.min.js"),
});
mkdirSync(dist);
const [map, core] = outputFiles.sort((one, other) => other.path.length - one.path.length);
await squeeze(core.path, core.text, map.text, SMALLEST);

const { mangleCache: names, metafile } = await build({
  ...everywhere,
  mangleCache,
  format: "esm",
  splitting: true,
  minifySyntax: true,
  sourcemap: true,
  metafile: true,
  absWorkingDir: root,
  outdir: join(dist, "esm"),
});
// The core is squeezed here, too, by a minifier that does more than most bundlers' own.
const index = relative(root, join(dist, "esm/index.js"));
for (const file of [index, ...metafile.outputs[index].imports.map(({ path }) => path)]) {
  const path = join(root, file);
  await squeeze(path, readFileSync(path, "utf8"), readFileSync(`${path}.map`, "utf8"), FOR_BUNDLERS);
}
// File by file: entry points must share the core, or its classes would be different ones in each. esbuild splits only ESM.
const { bundle: _, packages: __, ...single } = everywhere;
await build({
  ...single,
  mangleCache: names,
  entryPoints: sources(join(root, "src")),
  sourcemap: true,
  format: "cjs",
  outdir: join(dist, "cjs"),
});
execFileSync(
  process.execPath,
  [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    join(root, "tsconfig.build.json"),
    "--outDir",
    join(dist, "types"),
  ],
  { stdio: "inherit" },
);
// To a CommonJS program, types are CommonJS only where the nearest package.json says so.
cpSync(join(dist, "types"), join(dist, "cjs/types"), { recursive: true });
writeFileSync(join(dist, "cjs/package.json"), '{"type":"commonjs"}\n');

// To be read by people: with all names as they are.
const { mangleProps: ___, ...readable } = common;
await build({
  ...readable,
  entryPoints: { "relayrouter.browser": join(root, "src/browser.ts") },
  format: "esm",
  platform: "browser",
  outdir: dist,
  banner: { js: "/*! RelayRouter, Apache-2.0 */" },
});

writeFileSync(join(dist, ".built"), ""); // what the Makefile looks at
const [now, old] = [join(root, "dist"), join(root, `dist.${process.pid}.old`)];
rmSync(old, { recursive: true, force: true });
if (existsSync(now)) renameSync(now, old);
renameSync(dist, now);
rmSync(old, { recursive: true, force: true });
