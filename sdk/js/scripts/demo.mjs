// The demo page has a copy of the browser file, so that it runs from a checkout without Node.js.
// `--check` fails when the copy is old.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./entries.mjs";

const built = readFileSync(join(root, "dist/relayrouter.browser.js"), "utf8");
const copy = join(root, "../../gateway/app/demo/page/relayrouter.js");

if (!process.argv.includes("--check")) {
  writeFileSync(copy, built);
} else if (existsSync(copy) && readFileSync(copy, "utf8") !== built) {
  process.stderr.write("the demo page's copy of the SDK is old: npm run build:demo\n");
  process.exitCode = 1;
}
