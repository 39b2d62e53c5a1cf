/** A session on a played gateway and a virtual clock. */

import { createHash } from "node:crypto";
import { afterEach } from "vitest";
import type { Message } from "../../src/messages.js";
import type { ConnectOptions } from "../../src/options.js";
import type { PageEvent, Platform } from "../../src/platform.js";
import { connect, type Session } from "../../src/session.js";
import { Clock, settle } from "./clock.js";
import { PlayedGateway } from "./gateway.js";

/** The same numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export class Stage {
  readonly clock = new Clock();
  readonly gateway = new PlayedGateway(() => this.clock.nowMs);
  readonly random: () => number;
  isOnline = true;
  private readonly locks = new Set<string>();
  private readonly listeners = new Set<(event: PageEvent) => void>();

  constructor(seed = 1) {
    this.random = seeded(seed);
  }

  get listening(): number {
    return this.listeners.size;
  }

  readonly platform: Platform = {
    now: () => this.clock.nowMs,
    wallNow: () => this.clock.nowMs + this.clock.wallAheadMs,
    after: (ms, fn) => this.clock.after(ms, fn),
    random: () => this.random(),
    randomHex: (bytes) =>
      Array.from({ length: bytes }, () =>
        Math.floor(this.random() * 256)
          .toString(16)
          .padStart(2, "0"),
      ).join(""),
    sha256: async (data) => createHash("sha256").update(data).digest("hex"),
    WebSocket: this.gateway.WebSocket,
    fetch: this.gateway.fetch,
    isOnline: () => this.isOnline,
    onPage: (listener) => {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    },
    lock: async (name) => {
      if (this.locks.has(name)) return null;
      this.locks.add(name);
      return () => this.locks.delete(name);
    },
  };

  fire(event: PageEvent): void {
    for (const listener of [...this.listeners]) listener(event);
  }

  connect(options: Partial<ConnectOptions> = {}): Session {
    const session = connect({ url: "http://gw.test", session: "chat", platform: this.platform, ...options });
    opened.add(session);
    return session;
  }

  /** Connected, and its socket welcomed. */
  async live(options: Partial<ConnectOptions> = {}): Promise<Session> {
    const session = this.connect(options);
    await settle();
    this.gateway.socket.welcome();
    await settle();
    return session;
  }
}

const opened = new Set<Session>();

afterEach(async () => {
  for (const session of opened) await session.close();
  opened.clear();
});

/** What a loop takes, as it comes. `error`: how it ended. */
export class Reader {
  readonly messages: Message[] = [];
  error: unknown = null;
  isDone = false;

  constructor(session: Session) {
    void this.read(session);
  }

  get texts(): string[] {
    return this.messages.map(({ text }) => text);
  }

  get seqs(): (number | null)[] {
    return this.messages.map(({ seq }) => seq);
  }

  private async read(session: Session): Promise<void> {
    try {
      for await (const message of session) this.messages.push(message);
    } catch (error) {
      this.error = error;
    }
    this.isDone = true;
  }
}

export { settle };
