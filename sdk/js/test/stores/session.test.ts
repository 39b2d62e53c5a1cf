import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { connect, type RelayError, type Session, type SocketConstructor } from "../../src/index.js";
import { sessionStorageStore } from "../../src/stores/index.js";
import { FakeGateway, until } from "../fakes/gateway.js";

class TabStorage {
  isFull = false;
  writes = 0;
  constructor(readonly texts = new Map<string, string>()) {}
  getItem(key: string): string | null {
    return this.texts.get(key) ?? null;
  }
  setItem(key: string, text: string): void {
    this.writes += 1;
    if (this.isFull) throw new DOMException("full", "QuotaExceededError");
    this.texts.set(key, text);
  }
}

let gateway: FakeGateway;
let sessions: Session[];

beforeEach(async () => {
  gateway = await FakeGateway.start();
  sessions = [];
});

afterEach(async () => {
  await Promise.all(sessions.map((session) => session.close()));
  await gateway.stop();
});

function open(storage: TabStorage): { session: Session; kinds: string[]; errors: RelayError[] } {
  const socket = WebSocket as unknown as SocketConstructor;
  const store = sessionStorageStore({ storage });
  const session = connect({ url: gateway.url, session: "s", from: "start", store, WebSocket: socket });
  const kinds: string[] = [];
  const errors: RelayError[] = [];
  session.on("message", ({ kind }) => kinds.push(kind));
  session.on("error", (error) => errors.push(error));
  sessions.push(session);
  return { session, kinds, errors };
}

it("goes on after a reload as the same client, with the next message", async () => {
  const storage = new TabStorage();
  const first = open(storage);
  gateway.push({ kind: "one" }, { kind: "two" });
  await until("read", () => first.kinds.length === 2);
  await first.session.close();

  gateway.push({ kind: "three" });
  const second = open(storage);
  await until("read on", () => second.kinds.length > 0);
  expect(second.kinds).toEqual(["three"]);
  expect(second.session.client).toBe(first.session.client);
});

it("lets a duplicated tab read on under a client id of its own", async () => {
  const storage = new TabStorage();
  const first = open(storage);
  gateway.push({ kind: "one" });
  await until("stored", () => (storage.getItem("relayrouter:s") ?? "").includes("e.f.1"));

  const copy = open(new TabStorage(new Map(storage.texts)));
  gateway.push({ kind: "two" });
  await until("both read", () => copy.kinds.includes("two") && first.kinds.includes("two"));
  expect(copy.kinds).toEqual(["two"]);
  expect(copy.session.client).not.toBe(first.session.client);
  expect(gateway.open).toHaveLength(2);
});

it("reports a browser that keeps nothing once, and reads on", async () => {
  const storage = new TabStorage();
  storage.isFull = true;
  const { kinds, errors } = open(storage);
  for (const kind of ["one", "two", "three"]) {
    gateway.push({ kind });
    const { writes } = storage;
    await until(kind, () => kinds.includes(kind) && storage.writes > writes);
  }
  expect(errors.map(({ code }) => code)).toEqual(["store"]);
});
