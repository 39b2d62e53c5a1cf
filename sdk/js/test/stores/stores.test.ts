import { IDBFactory, IDBKeyRange } from "fake-indexeddb";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type CursorStore,
  indexedDbStore,
  jsonStore,
  type SavedPlace,
  StoreError,
  sessionStorageStore,
} from "../../src/stores/index.js";

const place: SavedPlace = {
  client: "c1",
  user: null,
  cursor: "e.f.7",
  inputs: [
    { seq: 3, payload: { kind: "data", text: "hé" } },
    { seq: null, payload: { kind: "data" } },
  ],
};
const later: SavedPlace = { ...place, cursor: "e.f.8", inputs: [] };

beforeAll(() => {
  globalThis.IDBKeyRange ??= IDBKeyRange;
});

class TabStorage {
  readonly texts = new Map<string, string>();
  isFull = false;
  getItem(key: string): string | null {
    return this.texts.get(key) ?? null;
  }
  setItem(key: string, text: string): void {
    if (this.isFull) throw new DOMException("full", "QuotaExceededError");
    this.texts.set(key, text);
  }
}

/** Each kind with how the page's next life sees the same data. */
const kinds: [string, () => () => CursorStore][] = [
  [
    "sessionStorage",
    () => {
      const storage = new TabStorage();
      return () => sessionStorageStore({ storage });
    },
  ],
  [
    "IndexedDB",
    () => {
      const indexedDB = new IDBFactory();
      return () => indexedDbStore({ indexedDB });
    },
  ],
  [
    "JSON callbacks",
    () => {
      const texts = new Map<string, string>();
      return () =>
        jsonStore({ read: (session) => texts.get(session), write: (session, text) => void texts.set(session, text) });
    },
  ],
];

describe.each(kinds)("%s", (_name, make) => {
  it("gives the next life of the page what was saved last, per session", async () => {
    const open = make();
    const store = open();
    await store.save("a", place);
    await store.save("a", later);
    await store.save("b", place);

    expect(await open().load("a")).toEqual(later);
    expect(await open().load("b")).toEqual(place);
    expect(await open().load("c")).toBe(null);
  });
});

it.each([
  ["not JSON", "{"],
  ["a list", "[]"],
  ["no client", '{"user":null,"cursor":null,"inputs":[]}'],
  ["an empty client", '{"client":"","user":null,"cursor":null,"inputs":[]}'],
  ["a cursor that is a number", '{"client":"c","user":null,"cursor":7,"inputs":[]}'],
  ["an input without a payload", '{"client":"c","user":null,"cursor":null,"inputs":[{"seq":1}]}'],
  ["an input with half a number", '{"client":"c","user":null,"cursor":null,"inputs":[{"seq":1.5,"payload":{}}]}'],
])("takes %s for no place at all", async (_name, text) => {
  expect(await jsonStore({ read: () => text, write: () => undefined }).load("a")).toBe(null);
});

describe("a browser that refuses", () => {
  it("is reported once, and memory keeps the place", async () => {
    const storage = new TabStorage();
    const store = sessionStorageStore({ storage });
    await store.save("a", place);
    storage.isFull = true;

    await expect(store.save("a", later)).rejects.toThrow(StoreError);
    await store.save("a", { ...later, cursor: "e.f.9" });
    expect((await store.load("a"))?.cursor).toBe("e.f.9");
    // What the tab has is old, and whole.
    expect(await sessionStorageStore({ storage }).load("a")).toEqual(place);
  });

  it("is written to again when it has room", async () => {
    const storage = new TabStorage();
    const store = sessionStorageStore({ storage });
    storage.isFull = true;
    await expect(store.save("a", place)).rejects.toThrow("QuotaExceededError");
    storage.isFull = false;
    await store.save("a", later);
    expect(await sessionStorageStore({ storage }).load("a")).toEqual(later);
    expect(await store.load("a")).toEqual(later);
  });

  it("may have no storage at all", async () => {
    const store = sessionStorageStore();
    await expect(store.load("a")).rejects.toThrow(StoreError);
    await store.save("a", place);
    expect(await store.load("a")).toEqual(place);
  });

  it("may deny or forget IndexedDB", async () => {
    const denied = {
      open: () => {
        throw new DOMException("private", "SecurityError");
      },
    } as unknown as IDBFactory;
    const store = indexedDbStore({ indexedDB: denied });
    await expect(store.load("a")).rejects.toThrow("SecurityError");
    await store.save("a", place);
    expect(await store.load("a")).toEqual(place);
  });

  it("may never answer", async () => {
    const silent = { open: () => ({}) } as unknown as IDBFactory;
    const store = indexedDbStore({ indexedDB: silent, timeoutMs: 1 });
    await expect(store.load("a")).rejects.toThrow("TimeoutError");
  });
});

describe("IndexedDB", () => {
  it("opens anew after the browser closed it", async () => {
    const factory = new IDBFactory();
    const connections: IDBDatabase[] = [];
    const indexedDB = {
      open: (name: string, version: number) => {
        const request = factory.open(name, version);
        request.addEventListener("success", () => connections.push(request.result));
        return request;
      },
    } as unknown as IDBFactory;
    const store = indexedDbStore({ indexedDB });
    await store.save("a", place);
    connections[0]?.close();

    await store.save("a", later);
    expect(await store.load("a")).toEqual(later);
    expect(connections).toHaveLength(2);
  });

  it("drops places that nobody wrote for long", async () => {
    const indexedDB = new IDBFactory();
    await indexedDbStore({ indexedDB }).save("a", place);

    const next = indexedDbStore({ indexedDB, maxAgeMs: -1_000 });
    expect(await next.load("a")).toBe(null);
  });
});
