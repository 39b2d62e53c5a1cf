import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
// @ts-expect-error: a script of the build, without types
import { internalNames } from "../scripts/internal_names.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(ts|tsx|js)$/.test(path))
    .map((path) => join(folder, path));
const withoutComments = (code: string) => code.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
const isMember = (name: string, code: string) =>
  new RegExp(`\\.${name}\\b|\\b${name}\\??:|[{,] ${name} ?[,}]`).test(code);

/** In a worker, in a context with what a service worker has: no window, no document, and no way to import anything. */
const WORKER = `
const { parentPort, workerData } = require("node:worker_threads");
const vm = require("node:vm");
const globals = { fetch, crypto, performance, setTimeout, clearTimeout, queueMicrotask, URL, URLSearchParams,
  AbortController, TextEncoder, TextDecoder, navigator: { onLine: true }, addEventListener() {}, removeEventListener() {} };
const context = vm.createContext(globals);
const script = workerData.code.replace(/export\\s*\\{([^}]*)\\};?/, (_, names) =>
  "globalThis.api = {" + names.replace(/([\\w$]+) as ([\\w$]+)/g, "$2: $1") + "};");
vm.runInContext(script, context);
const { connect } = context.api;
(async () => {
  const seen = [];
  for (const channel of ["sse", "poll"]) {
    const session = connect({ url: workerData.url, session: "s", channel, from: "start" });
    const healed = new Promise((resolve) => session.on("digest", resolve));
    const input = await session.send({ text: "hi" });
    const { ok, healed: isHealed } = await healed;
    seen.push({ channel: session.channel, seq: input.seq, text: session.text("r"), ok, isHealed });
    await session.close();
  }
  parentPort.postMessage(seen);
})();
`;

const TEXT = "hello";
const at = { timestamp: 1, session_id: "s" };
const welcome = { kind: "welcome", connection: "c", cursor: "e.f.0", head: 0, resumed: "fresh", input_seq: 0 };
const framesOf = (text: string) => [
  { type: "control", ...at, payload: welcome },
  { type: "text", seq: 1, ...at, payload: { kind: "run_start", run: "r" } },
  { type: "text", seq: 2, ...at, payload: { kind: "delta", run: "r", text, at: 0 } },
  {
    type: "text",
    seq: 3,
    ...at,
    payload: { kind: "run_end", run: "r", bytes: TEXT.length, sha256: createHash("sha256").update(TEXT).digest("hex") },
  },
];

/** A gateway that loses a letter on every connection, and has the whole text in its history. */
const gateway = () =>
  createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://localhost");
    const json = (body: unknown) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(body));
    if (url.pathname.endsWith("/events")) {
      response.setHeader("Content-Type", "text/event-stream");
      for (const frame of framesOf("hellx")) response.write(`data: ${JSON.stringify(frame)}\n\n`);
    } else if (url.pathname.endsWith("/input")) {
      json({ what: "input" });
    } else if (url.searchParams.get("since") === "e.f.3") {
      setTimeout(() => json({ frames: [], cursor: "e.f.3" }), 500);
    } else {
      const frames = framesOf(url.searchParams.has("wait") ? "hellx" : TEXT);
      json({ connection: "c", frames, cursor: "e.f.3", head: 3, more: false, close: null });
    }
  });

describe("the core as it is published", () => {
  it("is whole: nothing imports a part of it later, as service workers cannot", () => {
    const files = ["dist/relayrouter.min.js", "dist/relayrouter.browser.js", ...filesOf("dist/esm"), ...filesOf("src")];

    expect(existsSync(join(root, "dist/relayrouter.min.js"))).toBe(true);
    expect(files.filter((path) => /\bimport\s*\(/.test(withoutComments(read(path))))).toEqual([]);
    expect(/\bimport\b/.test(read("dist/relayrouter.min.js"))).toBe(false);
  });

  it("reads, speaks and heals in a worker", async () => {
    const server = gateway();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const worker = new Worker(WORKER, { eval: true, workerData: { url, code: read("dist/relayrouter.min.js") } });
    const seen = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    await worker.terminate();
    server.closeAllConnections();
    server.close();

    const healed = { seq: 1, text: TEXT, ok: true, isHealed: true };
    expect(seen).toEqual([
      { channel: "sse", ...healed },
      { channel: "poll", ...healed },
    ]);
  });
});

describe("a member that the build gives a short name", () => {
  const types = filesOf("dist/types").filter((path) => !/dist\/types\/[a-z_]+\.d\.ts/.test(path));
  /** What applications see of the core: these files as a whole, and what is exported of the others. */
  const seen = ["errors", "events", "options", "platform", "session", "states", "store"].map(
    (name) => `src/${name}.ts`,
  );
  const entries = filesOf("src").filter((path) => path.split("/").length > 2);
  const publicOf = (path: string) =>
    withoutComments(read(path))
      .replace(/export interface Settings[\s\S]*?\n}/, "")
      .replace(/\n {4,}.*|^import.*$/gm, "") // bodies
      .replace(/private .*/g, "");

  it("is in no other entry's code or types", () => {
    for (const path of [...entries, ...types]) {
      const code = withoutComments(read(path));
      expect(internalNames.filter((name: string) => isMember(name, code))).toEqual([]);
    }
  });

  it("is no name of the wire: none is in the scripted conversations of both SDKs", () => {
    const folder = fileURLToPath(new URL("../../conformance/scenarios", import.meta.url));
    const wire = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
      /\.(json|ya?ml)$/.test(path),
    );
    const words = wire.map((path) => readFileSync(join(folder, path), "utf8")).join("\n");

    expect(wire.length).toBeGreaterThan(0);
    const found = internalNames.filter((name: string) => new RegExp(`\\b${name}"?:`).test(words));
    expect(found).toEqual(["pong", "requests", "welcome"]); // steps of the script, no fields of a frame
  });

  it("is nothing that an application may give or is given", () => {
    for (const path of seen) {
      const code = publicOf(path);
      expect([
        path,
        internalNames.filter((name: string) => new RegExp(`^ {2}(readonly )?${name}\\??[:(<]`, "m").test(code)),
      ]).toEqual([path, []]);
    }
    expect(internalNames).not.toContain("firstSeq");
  });
});
