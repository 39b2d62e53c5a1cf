// What is published, used as its users do: packs a clean build, installs the file elsewhere, and imports, requires,
// type-checks and bundles every entry point from there.
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { root } from "./entries.mjs";

/** What each entry point must have. `browser` has no CommonJS. */
const NAMES = {
  ".": ["connect", "RelayError", "AuthError"],
  "./segmenter": ["Segmenter", "segmentStream"],
  "./render": ["renderText", "FrameBatch"],
  "./react": ["useSession"],
  "./ai-sdk": ["RelayChatTransport"],
  "./media": ["withMedia"],
  "./stores": ["sessionStorageStore", "indexedDbStore", "jsonStore"],
};
const PEERS = ["react", "ai", "@types/react"];
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const gateway = readFileSync(join(root, "../../gateway/__init__.py"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "relayrouter-pack-"));

const run = (command, args, options = {}) => execFileSync(command, args, { cwd: folder, encoding: "utf8", ...options });
// As `npm run` was found: where Node.js comes from a wheel, there is no other way to it.
const { npm_execpath: npmScript } = process.env;
const npm = (args, options) =>
  npmScript ? run(process.execPath, [npmScript, ...args], options) : run("npm", args, options);
const specifier = (entry) => name + entry.slice(1);
const ids = Object.keys(NAMES).map((entry, index) => [specifier(entry), `m${index}`, NAMES[entry]]);
const steps = [];
const step = (what, fn) => steps.push([what, fn]);

step("the version is the gateway's", () => {
  if (!gateway.includes(`"${version}"`)) throw new Error(`package.json says ${version}`);
});

step("pack and install", () => {
  npm(["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
  const [{ filename, files }] = JSON.parse(npm(["pack", "--json", "--pack-destination", folder], { cwd: root }));
  const strange = files
    .map((file) => file.path)
    .filter((path) => !/^(dist\/|package\.json|README\.md|LICENSE)/.test(path));
  if (strange.length) throw new Error(`it packs ${strange}`);
  for (const needed of ["README.md", "LICENSE", "dist/relayrouter.browser.js", "dist/relayrouter.min.js"]) {
    if (!files.some((file) => file.path === needed)) throw new Error(`it lacks ${needed}`);
  }
  writeFileSync(join(folder, "package.json"), '{"name":"consumer","private":true,"type":"module"}\n');
  const peers = PEERS.map((peer) => `${peer}@file:${join(root, "node_modules", peer)}`);
  npm(["install", "--offline", "--no-audit", "--no-fund", "--install-links=false", `./${filename}`, ...peers]);
});

const check = (names) =>
  `for (const name of ${JSON.stringify(names)}) if (!(name in m)) throw new Error(name + " is missing");`;

step("import every entry", () => {
  for (const [from, , names] of ids) {
    run(process.execPath, ["--input-type=module", "-e", `import * as m from "${from}"; ${check(names)}`]);
  }
  for (const [file, names] of [
    ["browser", ["connect", "Segmenter"]],
    ["min", NAMES["."]],
  ]) {
    run(process.execPath, ["--input-type=module", "-e", `import * as m from "${name}/${file}"; ${check(names)}`]);
  }
});

step("require every entry", () => {
  for (const [from, , names] of ids) {
    run(process.execPath, ["--input-type=commonjs", "-e", `const m = require("${from}"); ${check(names)}`]);
  }
});

/** By the lowest rung. */
const READ = `const session = connect({ url: process.argv[1], session: "s", channel: "poll", from: "start" });
(async () => {
  for await (const message of session) {
    console.log(message.kind, message.text);
    break;
  }
  await session.close();
})();`;

step("read a message, imported and required", async () => {
  const at = { timestamp: 1, session_id: "s" };
  const welcome = {
    kind: "welcome",
    connection: "c",
    cursor: "e.f.0",
    head: 1,
    resumed: "fresh",
    input_seq: 0,
    heartbeat: 20,
  };
  const frames = [
    { type: "control", ...at, payload: welcome },
    { type: "text", seq: 1, ...at, payload: { kind: "delta", run: "r", text: "hello", at: 0 } },
  ];
  const server = createServer((_, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ connection: "c", frames, cursor: "e.f.1", head: 1, more: false, close: null }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const programs = {
    module: `import { connect } from "${name}"; ${READ}`,
    commonjs: `const { connect } = require("${name}"); ${READ}`,
  };
  for (const [kind, program] of Object.entries(programs)) {
    const args = [`--input-type=${kind}`, "-e", program, url];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: 20_000 });
    if (stdout !== "delta hello\n") throw new Error(`${kind} read: ${stdout}`);
  }
  server.close();
});

step("types for import and require, node16 and bundler", () => {
  const uses = (of) => of.map(([, id, names]) => `export const u_${id} = [${names.map((each) => `${id}.${each}`)}];`);
  const imports = (of) => of.map(([from, id]) => `import * as ${id} from "${from}";`);
  const requires = (of) => of.map(([from, id]) => `import ${id} = require("${from}");`);
  const own = `const session = m0.connect({ url: "http://localhost", session: "s" });
export const kinds: Promise<string[]> = (async () => {
  const out: string[] = [];
  for await (const message of session) out.push(message.kind);
  return out;
})();`;
  mkdirSync(join(folder, "types"));
  const write = (path, ...lines) => writeFileSync(join(folder, path), `${lines.flat().join("\n")}\n`);
  const ai = ids.filter(([from]) => from.endsWith("/ai-sdk"));
  const others = ids.filter((each) => !ai.includes(each));
  const browser = `import { connect } from "${name}/browser";\nexport { connect as c } from "${name}/min";\nexport const u = connect;`;
  write("types/esm.mts", imports(others), browser, uses(others), own);
  write("types/cjs.cts", requires(others), uses(others), own);
  write("types/ai.mts", imports(ai), uses(ai));
  write("types/ai.cts", requires(ai), uses(ai));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const strict = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2023,dom", "--types", ""];
  // The types of `ai` need others that its users have, or skip.
  for (const [module, resolution, skips, files] of [
    ["node16", "node16", "false", ["types/esm.mts", "types/cjs.cts"]],
    ["node16", "node16", "true", ["types/ai.mts", "types/ai.cts"]],
    ["esnext", "bundler", "false", ["types/esm.mts"]],
    ["esnext", "bundler", "true", ["types/ai.mts"]],
  ]) {
    const how = ["--skipLibCheck", skips, "--module", module, "--moduleResolution", resolution];
    run(process.execPath, [tsc, ...strict, ...how, ...files], { stdio: "inherit" });
  }
});

step("a stack trace names the sources", () => {
  const failing = "try { connect({}) } catch ({ stack }) { console.log(stack) }";
  for (const from of [name, `${name}/min`]) {
    const program = `import { connect } from "${from}"; ${failing}`;
    const stack = run(process.execPath, ["--enable-source-maps", "--input-type=module", "-e", program]);
    if (!/src\/options\.ts:\d+/.test(stack)) throw new Error(`${from}: ${stack}`);
  }
});

step("bundle for browsers, and leave out what is not used", async () => {
  const bundled = async (contents) => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: folder },
      bundle: true,
      minify: true,
      format: "esm",
      platform: "browser",
      external: ["react", "ai"],
      write: false,
      logLevel: "error",
    });
    return outputFiles[0].text.length;
  };
  for (const [from, , names] of ids) {
    const used = await bundled(`import { ${names[0]} } from "${from}"; console.log(${names[0]});`);
    const unused = await bundled(`import "${from}"; import { ${names[0]} } from "${from}"; console.log(1);`);
    if (used < 500 || unused > 200) throw new Error(`${from}: ${used} bytes used, ${unused} unused`);
  }
  const error = await bundled(`import { RelayError } from "${name}"; console.log(RelayError);`);
  const core = await bundled(`import { connect } from "${name}"; console.log(connect);`);
  const both = await bundled(
    `import { connect } from "${name}"; import { useSession } from "${name}/react"; console.log(connect, useSession);`,
  );
  const react = await bundled(`import { useSession } from "${name}/react"; console.log(useSession);`);
  if (both > react + core / 4)
    throw new Error(`with React it has two cores: ${both} bytes, ${react} and ${core} alone`);
  if (error > core / 4) throw new Error(`the core cannot be shaken: ${error} of ${core} bytes for an error class`);
});

try {
  for (const [what, fn] of steps) {
    await fn();
    process.stdout.write(`ok: ${what}\n`);
  }
  process.stdout.write(
    `${name} ${version}: ${readdirSync(folder).find((file) => file.endsWith(".tgz"))} is fit to publish\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
