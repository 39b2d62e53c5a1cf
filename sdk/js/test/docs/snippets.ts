/** The code of docs/clients.md, as it stands there, run as a program of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const sdk = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(join(sdk, "../../docs/clients.md"), "utf8");
const python = join(sdk, "../../.venv/bin/python");

export function snippet(name: string): string {
  const match = new RegExp(`<!-- tested: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\n\`\`\``).exec(page);
  if (!match?.[1]) throw new Error(`docs/clients.md has no snippet ${name}`);
  return match[1];
}

/** What the page promises to have, in Node: before the snippet. */
const PRELUDE = `
import { Window } from "happy-dom";
import { WebSocket } from "ws";
import { EventSource } from "eventsource";
const window = new Window({ url: "http://localhost/" });
const locks = undefined;
const globals = {
  window, document: window.document, sessionStorage: window.sessionStorage, WebSocket, EventSource,
  navigator: { onLine: true, locks, userAgent: "test" },
};
for (const [name, value] of Object.entries(globals)) Object.defineProperty(globalThis, name, { value, writable: true });
`;

export interface Program {
  /** Everything written until now. */
  output(): string;
  stop(): void;
}

/** `before` and `after` are put around the snippet; imports of the package mean its sources. */
export async function runSnippet(name: string, gateway: string, before = "", after = ""): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), "relayrouter-docs-"));
  const urls = (code: string) =>
    code.replaceAll("http://localhost:8080", gateway).replaceAll("ws://localhost:8080", gateway.replace("http", "ws"));
  if (name === "python") {
    const file = join(folder, "snippet.py");
    writeFileSync(file, urls(snippet(name)));
    return follow(spawn(python, ["-u", file], { env: { ...process.env, PYTHONPATH: join(sdk, "../python") } }), folder);
  }
  const prelude = join(folder, "prelude.mjs");
  writeFileSync(prelude, PRELUDE);
  await build({
    stdin: { contents: urls(`${before}\n${snippet(name)}\n${after}`), resolveDir: sdk, loader: "jsx" },
    inject: [prelude],
    nodePaths: [join(sdk, "node_modules")],
    alias: Object.fromEntries(
      ["render", "stores", "react", "ai-sdk", "segmenter"].map((entry) => [
        `relayrouter/${entry}`,
        join(sdk, "src", entry, "index.ts"),
      ]),
    ),
    plugins: [
      {
        name: "the package itself",
        setup: ({ onResolve }) => onResolve({ filter: /^relayrouter$/ }, () => ({ path: join(sdk, "src/index.ts") })),
      },
    ],
    bundle: true,
    jsx: "automatic",
    format: "esm",
    platform: "node",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    external: ["happy-dom", "ws", "eventsource"],
    outfile: join(sdk, "node_modules/.snippets", `${name}.mjs`),
    logLevel: "error",
  });
  return follow(spawn(process.execPath, [join(sdk, "node_modules/.snippets", `${name}.mjs`)]), folder);
}

function follow(child: ChildProcess, folder: string): Program {
  let output = "";
  const take = (data: Buffer) => {
    output += data.toString();
  };
  child.stdout?.on("data", take);
  child.stderr?.on("data", take);
  return {
    output: () => output,
    stop: () => {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
