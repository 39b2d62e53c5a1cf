// dist/: ES modules, CommonJS and types of every entry point. Peer dependencies stay outside.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { entries, root } from "./entries.mjs";

const common = {
  entryPoints: entries,
  bundle: true,
  packages: "external",
  platform: "neutral",
  target: "es2022",
  logLevel: "warning",
};

rmSync(join(root, "dist"), { recursive: true, force: true });
await build({ ...common, format: "esm", splitting: true, outdir: join(root, "dist/esm") });
await build({ ...common, format: "cjs", outdir: join(root, "dist/cjs"), outExtension: { ".js": ".cjs" } });
writeFileSync(join(root, "dist/cjs/package.json"), '{"type":"commonjs"}\n');
execFileSync(
  process.execPath,
  [join(root, "node_modules/typescript/bin/tsc"), "-p", join(root, "tsconfig.build.json")],
  { stdio: "inherit" },
);
