/** The one seam to the environment: clock, timers, network, page. Tests bring their own with virtual time. */

/** As much of a WebSocket as is used; `ws` for Node 20 has it too. */
export interface SocketLike {
  readonly readyState: number;
  binaryType: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  /** Of `ws`: without a handshake that a dead peer never answers. */
  terminate?(): void;
}
export type SocketConstructor = new (url: string, protocols: string[]) => SocketLike;

/** As much of an EventSource as is used. */
export interface EventSourceLike {
  onerror: ((event: never) => void) | null;
  addEventListener(name: string, listener: (event: { data: string }) => void): void;
  close(): void;
}
export type EventSourceConstructor = new (url: string) => EventSourceLike;

export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** `restored`: out of the back-forward cache. `leaving`: the page may be gone after this event. */
export type PageEvent = "visible" | "hidden" | "online" | "offline" | "restored" | "leaving";

export interface Platform {
  /** Ms that never go back; need not count while the machine sleeps. */
  now(): number;
  /** Unix time in ms: counts while the machine sleeps. */
  wallNow(): number;
  /** Returns how to cancel it. */
  after(ms: number, fn: () => void): () => void;
  random(): number;
  /** Lower-case hex of so many random bytes, good enough that nobody guesses it. */
  randomHex(bytes: number): string;
  sha256(data: Uint8Array): Promise<string>;
  readonly WebSocket: SocketConstructor | null;
  readonly fetch: FetchLike | null;
  /** Where fetch cannot stream; else absent. */
  readonly EventSource?: EventSourceConstructor | null;
  isOnline(): boolean;
  /** Returns how to stop listening. */
  onPage(listener: (event: PageEvent) => void): () => void;
  /** Take a name for this page alone: how to give it back, or null when another page has it. */
  lock(name: string): Promise<(() => void) | null>;
}

type Scope = {
  WebSocket?: SocketConstructor;
  fetch?: FetchLike;
  EventSource?: EventSourceConstructor;
  ReadableStream?: unknown;
  addEventListener?: (name: string, fn: (event: { persisted?: boolean }) => void) => void;
  removeEventListener?: (name: string, fn: (event: { persisted?: boolean }) => void) => void;
  document?: Document;
  navigator?: { onLine?: boolean; locks?: LockManager };
};

export function defaultPlatform(): Platform {
  const scope = globalThis as unknown as Scope;
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    randomHex: (bytes) => hex(crypto.getRandomValues(new Uint8Array(bytes))),
    sha256: async (data) => {
      // Only pages that are no secure context load it.
      if (!crypto.subtle) return (await import("./digests.js")).sha256(data);
      return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data as BufferSource)));
    },
    WebSocket: scope.WebSocket ?? null,
    EventSource: scope.ReadableStream ? null : (scope.EventSource ?? null),
    fetch: scope.fetch ? (url, init) => fetch(url, init) : null,
    isOnline: () => scope.navigator?.onLine !== false,
    onPage: (listener) => listenToPage(scope, listener),
    lock: async (name) =>
      scope.navigator?.locks ? webLock(scope.navigator.locks, name).catch(() => none) : ownLock(name),
  };
}

/** Names taken in this process, where there are no Web Locks. */
const taken = new Set<string>();

function ownLock(name: string): (() => void) | null {
  if (taken.has(name)) return null;
  taken.add(name);
  return () => taken.delete(name);
}

function listenToPage(scope: Scope, listener: (event: PageEvent) => void): () => void {
  const { document } = scope;
  const onVisibility = () => listener(document?.visibilityState === "hidden" ? "hidden" : "visible");
  const handlers: Record<string, (event: { persisted?: boolean }) => void> = {
    online: () => listener("online"),
    offline: () => listener("offline"),
    pageshow: (event) => event.persisted && listener("restored"),
    pagehide: () => listener("leaving"),
  };
  document?.addEventListener("visibilitychange", onVisibility);
  for (const [name, handler] of Object.entries(handlers)) scope.addEventListener?.(name, handler);
  return () => {
    document?.removeEventListener("visibilitychange", onVisibility);
    for (const [name, handler] of Object.entries(handlers)) scope.removeEventListener?.(name, handler);
  };
}

async function webLock(locks: LockManager, name: string): Promise<(() => void) | null> {
  return new Promise((resolve) => {
    const held = locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null);
      return new Promise<void>((release) => resolve(release));
    });
    // A page that may not use locks (an opaque origin) has no duplicate to fear either.
    held.catch(() => resolve(none));
  });
}

const none = (): void => undefined;

const hex = (data: Uint8Array): string => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
