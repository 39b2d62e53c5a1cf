// The demo page has copies of the built files that it uses, so that it runs from a checkout without Node.js.
// `--check` fails when one is old.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./entries.mjs";

const page = join(root, "../../gateway/app/demo/page");
const COPIES = { "relayrouter.browser.js": "relayrouter.js", "esm/media.js": "media.js" };

for (const [file, name] of Object.entries(COPIES)) {
  const built = readFileSync(join(root, "dist", file), "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/m, ""); // its map stays
  const copy = join(page, name);
  if (!process.argv.includes("--check")) {
    writeFileSync(copy, built);
  } else if (existsSync(copy) && readFileSync(copy, "utf8") !== built) {
    process.stderr.write(`the demo page's copy of ${file} is old: npm run build:demo\n`);
    process.exitCode = 1;
  }
}
