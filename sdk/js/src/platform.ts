/** The one seam to the environment: clock, timers, network, page. Tests bring their own with virtual time. */

import { sha256 } from "./digests.js";
import { hex } from "./hex.js";

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
  isOnline(): boolean;
  /** Returns how to stop listening. */
  onPage(listener: (event: PageEvent) => void): () => void;
  /** Take a name for this page alone: how to give it back, or null when another page has it. */
  lock(name: string): Promise<(() => void) | null>;
}

type Listen = (name: string, fn: (event: { type: string; persisted?: boolean }) => void) => void;
type Scope = {
  WebSocket?: SocketConstructor;
  fetch?: FetchLike;
  addEventListener?: Listen;
  removeEventListener?: Listen;
  document?: Document;
  navigator?: { onLine?: boolean; locks?: LockManager };
};

export function defaultPlatform(): Platform {
  const scope = globalThis as unknown as Scope;
  return {
    now: () => performance.now(),
    wallNow: Date.now,
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    randomHex: (bytes) => hex(crypto.getRandomValues(new Uint8Array(bytes))),
    sha256: async (data) => {
      if (!crypto.subtle) return sha256(data); // a page that is no secure context
      return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data as BufferSource)));
    },
    WebSocket: scope.WebSocket ?? null,
    fetch: scope.fetch ? (url, init) => fetch(url, init) : null,
    isOnline: () => scope.navigator?.onLine !== false,
    onPage: (listener) => listenToPage(scope, listener),
    // A page that may not use locks (an opaque origin) has no duplicate to fear either.
    lock: async (name) => {
      const locks = scope.navigator?.locks;
      return locks ? webLock(locks, name).catch(() => none) : ownLock(name);
    },
  };
}

/** Names taken in this process, where there are no Web Locks. */
const taken = new Set<string>();

function ownLock(name: string): (() => void) | null {
  if (taken.has(name)) return null;
  taken.add(name);
  return () => taken.delete(name);
}

/** Of the window or worker. `pageshow` without `persisted` is the page's first one. */
const EVENTS: Readonly<Record<string, PageEvent>> = {
  online: "online",
  offline: "offline",
  pageshow: "restored",
  pagehide: "leaving",
};

function listenToPage(scope: Scope, listener: (event: PageEvent) => void): () => void {
  const { document } = scope;
  const onVisibility = () => listener(document?.visibilityState === "hidden" ? "hidden" : "visible");
  const onEvent: Parameters<Listen>[1] = ({ type, persisted }) => {
    const event = EVENTS[type];
    if (event && (persisted || event !== "restored")) listener(event);
  };
  const each = (does: "addEventListener" | "removeEventListener") => {
    document?.[does]("visibilitychange", onVisibility);
    for (const name in EVENTS) scope[does]?.(name, onEvent);
  };
  each("addEventListener");
  return () => each("removeEventListener");
}

const webLock = (locks: LockManager, name: string): Promise<(() => void) | null> =>
  new Promise((resolve, reject) => {
    const hold = (lock: unknown) => lock && new Promise<void>(resolve);
    locks.request(name, { ifAvailable: true }, hold).then(() => resolve(null), reject);
  });

export const none = (): void => undefined;

export const sleep = (platform: Platform, ms: number): Promise<void> =>
  new Promise((resolve) => platform.after(ms, resolve));

/** Where some wait until it is opened; who comes later waits for the next time. */
export function createGate() {
  let waiting: (() => void)[] = [];
  return {
    wait: (): Promise<void> => new Promise((resolve) => waiting.push(resolve)),
    open(): void {
      for (const go of waiting) go();
      waiting = [];
    },
  };
}

/** One timer: while it runs, to start it again changes nothing. */
export function createTimer(platform: Platform) {
  let cancel: (() => void) | null = null;
  return {
    start(ms: number, fn: () => void): void {
      cancel ??= platform.after(ms, () => {
        cancel = null;
        fn();
      });
    },
    stop(): void {
      cancel?.();
      cancel = null;
    },
  };
}

export type Timer = ReturnType<typeof createTimer>;

/** Rejects when it throws, in whatever way, or is late. Never settles in the call itself. */
export async function inTime<T>(platform: Platform, ms: number, act: () => Promise<T>, onLate = none): Promise<T> {
  let cancel = none;
  const late = new Promise<never>((_, reject) => {
    cancel = platform.after(ms, () => {
      onLate();
      reject(new Error("late"));
    });
  });
  return Promise.race([Promise.resolve().then(act), late]).finally(cancel);
}
