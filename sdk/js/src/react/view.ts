/** A session as one immutable value that changes once a frame: what React shows never mixes two moments. */

import type { RelayError } from "../errors.js";
import type { Ask, QualityEvent, RunInfo } from "../events.js";
import type { JsonObject, Message } from "../messages.js";
import { FrameBatch, type FrameClock, pageClock } from "../render/frames.js";
import { Lateness } from "../render/lateness.js";
import type { Session } from "../session.js";
import type { ChannelName, SessionState } from "../states.js";

export interface SessionSnapshot {
  /** For all else; null until the component is mounted. */
  readonly session: Session | null;
  readonly state: SessionState;
  readonly channel: ChannelName | null;
  /** Why it is in its state, for people. */
  readonly cause: string;
  /** Ms from the state's beginning to the next attempt; null when none is planned. */
  readonly retryIn: number | null;
  readonly quality: QualityEvent;
  /** Messages that are no part of a run's text, the last `maxMessages`: data, echo, tool, run_start, gap ... */
  readonly messages: readonly Message[];
  /** Of each of `runs`. */
  readonly texts: Readonly<Record<string, string>>;
  readonly thinking: Readonly<Record<string, string>>;
  /** In the order in which they came, the last `maxRuns`. */
  readonly runs: readonly RunInfo[];
  /** Open ones. */
  readonly asks: readonly Ask[];
  /** The last `rhythm` of each run that told one. */
  readonly rhythm: Readonly<Record<string, JsonObject>>;
  /** Inputs that wait to be accepted. */
  readonly queued: number;
  /** Why it is closed for good. */
  readonly error: RelayError | null;
}

/** Before there is a session: on the server, and while React renders for the first time. */
export const NO_SESSION: SessionSnapshot = {
  session: null,
  state: "connecting",
  channel: null,
  cause: "",
  retryIn: null,
  quality: { score: 1, level: "good", rtt: null },
  messages: [],
  texts: {},
  thinking: {},
  runs: [],
  asks: [],
  rhythm: {},
  queued: 0,
  error: null,
};

const IN_TEXTS = new Set(["delta", "thinking", "code_block", "snapshot"]);

export interface ViewLimits {
  readonly maxMessages: number;
  readonly maxRuns: number;
}

export class SessionView {
  snapshot: SessionSnapshot;
  readonly #session: Session;
  readonly #limits: ViewLimits;
  readonly #batch: FrameBatch;
  readonly #listeners = new Set<() => void>();
  readonly #stops: (() => void)[];
  #messages: Message[] = [];
  #changed: Partial<SessionSnapshot> = {};
  readonly #runs = new Map<string, RunInfo>();
  readonly #texts = new Set<string>();
  readonly #thinking = new Set<string>();

  constructor(session: Session, limits: ViewLimits, clock: FrameClock = pageClock()) {
    this.#session = session;
    this.snapshot = { ...NO_SESSION, session, state: session.state };
    this.#limits = limits;
    const lateness = new Lateness(session);
    this.#batch = new FrameBatch((lateMs) => {
      this.#publish();
      if (lateness.seen(lateMs, clock.now())) this.#batch.request();
    }, clock);
    this.#stops = [
      session.on("message", (message) => this.#onMessage(message)),
      session.on("text", ({ run }) => this.#onText(run, this.#texts)),
      session.on("thinking", ({ run }) => this.#onText(run, this.#thinking)),
      session.on("run", ({ run, state, reason }) => {
        this.#onRun({ run, state, reason });
        if (state === "ended") this.#note({ rhythm: without(this.#rhythm(), [run]) });
      }),
      session.on("ask", () => this.#note({ asks: session.asks })),
      session.on("ask_resolved", () => this.#note({ asks: session.asks })),
      session.on("state", ({ state, channel, cause, retryIn }) =>
        this.#note({ state, channel, cause, retryIn, error: session.error }),
      ),
      session.on("quality", (quality) => this.#note({ quality })),
      session.on("input", () => this.#note({ queued: session.queued })),
      session.on("rhythm", (payload) => {
        const { run } = payload;
        if (typeof run !== "string") return;
        this.#note({ rhythm: { ...this.#rhythm(), [run]: payload } });
      }),
    ];
  }

  /** Returns how to stop listening. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#batch.stop();
    this.#listeners.clear();
  }

  #rhythm(): Readonly<Record<string, JsonObject>> {
    return this.#changed.rhythm ?? this.snapshot.rhythm;
  }

  #onText(run: string, changed: Set<string>): void {
    changed.add(run);
    if (this.#runs.has(run)) this.#batch.request();
    else this.#onRun({ run, state: "open", reason: null });
  }

  #onRun(info: RunInfo): void {
    this.#runs.set(info.run, info);
    if (this.#runs.size > this.#limits.maxRuns) {
      const [oldest] = this.#runs.keys();
      if (oldest !== undefined) this.#runs.delete(oldest);
    }
    this.#note({ runs: [...this.#runs.values()] });
  }

  #note(changed: Partial<SessionSnapshot>): void {
    Object.assign(this.#changed, changed);
    this.#batch.request();
  }

  #onMessage(message: Message): void {
    if (IN_TEXTS.has(message.kind)) return;
    this.#messages = [...this.#messages, message].slice(-this.#limits.maxMessages);
    this.#note({ messages: this.#messages });
  }

  #publish(): void {
    const session = this.#session;
    const changed = this.#changed;
    this.#changed = {};
    // Texts are read now, all of them: what was noted may be older than what there is.
    const texts = this.#read(this.snapshot.texts, this.#texts, (run) => session.text(run));
    const thinking = this.#read(this.snapshot.thinking, this.#thinking, (run) => session.thinking(run));
    const isSame = texts === this.snapshot.texts && thinking === this.snapshot.thinking;
    if (isSame && Object.keys(changed).length === 0) return;
    this.snapshot = { ...this.snapshot, ...changed, texts, thinking };
    for (const listener of [...this.#listeners]) listener();
  }

  #read(
    before: Readonly<Record<string, string>>,
    changed: Set<string>,
    read: (run: string) => string,
  ): Readonly<Record<string, string>> {
    if (changed.size === 0) return before;
    const after: Record<string, string> = { ...before };
    for (const run of changed) after[run] = read(run);
    changed.clear();
    return without(
      after,
      Object.keys(after).filter((run) => !this.#runs.has(run)),
    );
  }
}

function without<T>(record: Readonly<Record<string, T>>, names: readonly string[]): Readonly<Record<string, T>> {
  return names.some((name) => name in record)
    ? Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)))
    : record;
}
