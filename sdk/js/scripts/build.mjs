// dist/: ES modules, CommonJS and types of every entry point, and one file for pages without a bundler.
// Peer dependencies stay outside.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { entries, root } from "./entries.mjs";

// `_x` is used in its own class only: it needs no name.
const common = { bundle: true, mangleProps: /^_[a-z]/, packages: "external", target: "es2022", logLevel: "warning" };
const everywhere = { ...common, entryPoints: entries, platform: "neutral" };
const dist = join(root, "dist");
const license = "/*! RelayRouter, Apache-2.0 */";

rmSync(dist, { recursive: true, force: true });
await build({ ...everywhere, format: "esm", splitting: true, outdir: join(dist, "esm") });
await build({ ...everywhere, format: "cjs", outdir: join(dist, "cjs"), outExtension: { ".js": ".cjs" } });
execFileSync(
  process.execPath,
  [join(root, "node_modules/typescript/bin/tsc"), "-p", join(root, "tsconfig.build.json")],
  { stdio: "inherit" },
);
// To a CommonJS program, types are CommonJS only where the nearest package.json says so.
cpSync(join(dist, "types"), join(dist, "cjs/types"), { recursive: true });
writeFileSync(join(dist, "cjs/package.json"), '{"type":"commonjs"}\n');

const browser = join(root, "src/browser.ts");
if (existsSync(join(root, "src/index.ts"))) {
  await build({
    ...common,
    entryPoints: { "relayrouter.browser": browser },
    format: "esm",
    platform: "browser",
    outdir: dist,
    banner: { js: license },
  });
}
