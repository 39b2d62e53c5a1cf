// The SDK under the conformance runner: JSON lines in, JSON lines out; many sessions at once, each named by `s`.
// Runs on the built package (dist/), as an application would.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
// Node.js 22 and later have a WebSocket of their own, which asks again by itself when an upgrade is answered by 401.
import { WebSocket } from "ws";
import { connect, defaultPlatform } from "../dist/esm/index.js";

const began = performance.now();
const sessions = new Map();
/** Store path -> the page that is being left: the next one loads after it. */
const leaving = new Map();

function say(event) {
  process.stdout.write(`${JSON.stringify({ ...event, t: Math.round(performance.now() - began) })}\n`);
}

/** One JSON file, replaced as a whole. */
class FileStore {
  isShared = true;

  constructor(path) {
    this.path = path;
  }

  async load(session) {
    try {
      return JSON.parse(readFileSync(this.path, "utf8"))[session] ?? null;
    } catch {
      return null;
    }
  }

  async save(session, place) {
    writeFileSync(`${this.path}.new`, JSON.stringify({ [session]: place }));
    renameSync(`${this.path}.new`, this.path);
  }
}

/** What Web Locks do among the tabs of a browser, among processes: a file that a living one has made. */
async function lockFile(store, name) {
  if (store === null) return () => {};
  const path = `${store}.${createHash("sha256").update(name).digest("hex").slice(0, 16)}.lock`;
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
  } catch {
    if (!(await hasEnded(Number(readFileSync(path, "utf8"))))) return null;
    writeFileSync(path, String(process.pid));
  }
  return () => rmSync(path, { force: true });
}

/** A process that was killed just now may take a moment to be gone. */
async function hasEnded(pid) {
  for (let look = 0; look < 10 && isAlive(pid); look++) await new Promise((resolve) => setTimeout(resolve, 20));
  return !isAlive(pid);
}

/** One that was killed and that nobody has waited for yet is dead. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !existsSync(`/proc/${pid}/stat`) || !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

class Page {
  constructor(s, options) {
    this.s = s;
    this.isOnline = true;
    this.slowMs = 0;
    this.listeners = new Set();
    this.store = options.store?.startsWith("file:") ? options.store.slice(5) : null;
    this.session = connect({ ...optionsOf(options), platform: this.platform() });
    this.session.on("state", ({ state, channel, cause, retryIn }) =>
      this.say("state", { state, channel, cause, retry_in_ms: retryIn }),
    );
    this.session.on("quality", (event) => this.say("quality", event));
    this.session.on("digest", (event) => this.say("digest", event));
    this.session.on("error", ({ name, code, message }) => this.say("error", { error: name, code, message }));
    this.session.on("run", ({ run, state, reason }) => this.say("run", { run, state, reason }));
    this.session.on("ask", ({ ask, message }) => this.say("ask", { ask, message }));
    this.session.on("ask_resolved", ({ ask, status, value }) => this.say("ask_resolved", { ask, status, value }));
    this.session.on("input", ({ seq, status }) => this.say("input", { seq, status }));
    this.session.on("rhythm", (payload) => this.say("rhythm", { payload }));
    this.session.on("text", ({ run, added, isRewritten }) =>
      this.say("text", { run, added, is_rewritten: isRewritten }),
    );
    void this.read();
  }

  say(event, fields) {
    say({ event, s: this.s, ...fields });
  }

  platform() {
    return Object.assign(defaultPlatform(), {
      WebSocket,
      isOnline: () => this.isOnline,
      onPage: (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      },
      lock: async (name) => lockFile(this.store, name),
    });
  }

  fire(event) {
    for (const listener of [...this.listeners]) listener(event);
  }

  async read() {
    let error = null;
    try {
      for await (const message of this.session) {
        const { kind, seq, firstSeq, run, text, payload } = message;
        this.say("message", { kind, seq, first_seq: firstSeq, run, text, payload });
        if (this.slowMs > 0) await new Promise((resolve) => setTimeout(resolve, this.slowMs));
      }
    } catch (caught) {
      error = caught;
    }
    this.say("ended", { error: error?.name ?? null, code: error?.code ?? null });
  }

  settle(id, promise) {
    promise.then(
      (value) => this.say("settled", { id, ok: true, value }),
      (error) => this.say("settled", { id, ok: false, error: error.name, code: error.code, message: error.message }),
    );
  }

  close() {
    const closed = this.session.close();
    if (this.store !== null) leaving.set(this.store, closed);
  }
}

function optionsOf(asked) {
  const { url, session, client, cursor, from, channel, user, segments, rhythm } = asked;
  const options = { url, session, client, cursor, from, channel, user, segments, rhythm };
  options.heartbeat = asked.heartbeat_ms;
  options.keepAlive = asked.keep_alive_ms;
  options.queueItems = asked.queue_items;
  options.queueBytes = asked.queue_bytes;
  options.token = asked.tokens ? tokenSource(asked.tokens) : asked.token;
  if (asked.store?.startsWith("file:")) options.store = new FileStore(asked.store.slice(5));
  options.timing = Object.fromEntries(
    Object.entries(asked.timing ?? {}).map(([name, value]) => [camel(name.replace(/_ms$/, "")), value]),
  );
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
}

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/** One per call, the last one for ever; `!` is a call that fails. */
function tokenSource(tokens) {
  let calls = 0;
  return async () => {
    const token = tokens[Math.min(calls++, tokens.length - 1)];
    if (token === "!") throw new Error("the token endpoint does not answer");
    return token;
  };
}

const actions = {
  connect: async ({ s, options }) => {
    const path = options.store?.startsWith("file:") ? options.store.slice(5) : null;
    if (path !== null) await leaving.get(path);
    sessions.set(s, new Page(s, options));
  },
  send: (page, { id, payload }) => page.settle(id, page.session.send(payload)),
  interrupt: (page, { id, run, seen }) =>
    page.settle(id, page.session.interrupt(run, seen ? { seq: seen[0], at: seen[1] } : undefined)),
  pause: (page, { id }) => page.settle(id, page.session.pause()),
  resume: (page, { id }) => page.settle(id, page.session.resume()),
  cancel: (page, { id, run, reason }) => page.settle(id, page.session.cancel(run, reason)),
  answer: (page, { id, ask, value }) => page.settle(id, page.session.answer(ask, value)),
  text: (page, { id, run }) => page.say("reply", { id, value: page.session.text(run) }),
  status: (page, { id }) => {
    const { state, channel, cursor, client, queued } = page.session;
    page.say("reply", { id, value: { state, channel, cursor, client, queued } });
  },
  probe: (page) => page.session.probe(),
  offline: (page) => {
    page.isOnline = false;
    page.fire("offline");
  },
  online: (page) => {
    page.isOnline = true;
    page.fire("online");
  },
  slow: (page, { ms }) => {
    page.slowMs = ms;
  },
  close: (page) => page.close(),
};

/** Per session one after the other: a connect may have to wait for the page before. */
const turns = new Map();

async function act(command) {
  const { do: what, s } = command;
  try {
    if (what === "connect") return await actions.connect(command);
    const action = actions[what];
    const page = sessions.get(s);
    if (action === undefined || page === undefined) throw new Error(`cannot do ${what} of ${s}`);
    await action(page, command);
  } catch (error) {
    say({ event: "driver_error", s, message: error.message });
  }
}

for await (const line of startReading()) {
  if (!line.trim()) continue;
  const command = JSON.parse(line);
  if (command.do === "exit") break;
  turns.set(
    command.s,
    (turns.get(command.s) ?? Promise.resolve()).then(() => act(command)),
  );
}
process.exit(0);

function startReading() {
  const lines = createInterface({ input: process.stdin });
  say({ event: "ready" });
  return lines;
}
