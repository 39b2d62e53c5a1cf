/** The events of a session, and their listeners. */

import type { RelayError } from "./errors.js";
import type { JsonObject, JsonValue, Message } from "./messages.js";
import type { ChannelName, SessionState } from "./states.js";

export interface TextEvent {
  readonly run: string;
  /** What is new. */
  readonly added: string;
  /** What was shown before is no longer true: show `session.text(run)` anew. */
  readonly isRewritten: boolean;
}

export interface RunInfo {
  readonly run: string;
  readonly state: "open" | "ended";
  /** Of its end: `complete`, `interrupted` ...; null while it is open. */
  readonly reason: string | null;
}

export interface RunEvent extends RunInfo {
  /** Of `run_start` or `run_end`. */
  readonly payload: JsonObject;
}

export interface Ask {
  readonly ask: string;
  readonly message: string;
  readonly run: string | null;
  readonly payload: JsonObject;
}

export interface AskResolvedEvent {
  readonly ask: string;
  readonly status: string;
  readonly value: JsonValue | undefined;
  readonly payload: JsonObject;
}

export interface GapEvent {
  readonly first: number;
  readonly last: number;
  readonly reason: string;
}

export interface StateEvent {
  readonly state: SessionState;
  readonly channel: ChannelName | null;
  /** Why, for people. */
  readonly cause: string;
  /** Ms until the next attempt; null when none is planned. */
  readonly retryIn: number | null;
  readonly url: string;
}

export interface QualityEvent {
  /** 0 (unusable) to 1. */
  readonly score: number;
  readonly level: "good" | "fair" | "poor";
  /** Smoothed round-trip time in ms; null before the first pong. */
  readonly rtt: number | null;
}

export interface InputEvent {
  /** Null until it has its number. */
  readonly seq: number | null;
  readonly status: "queued" | "sent" | "accepted" | "failed";
  readonly payload: JsonObject;
}

export interface DigestEvent {
  readonly run: string;
  /** The text that we have equals the producer's. */
  readonly ok: boolean;
  /** It did not at first, and was fetched again. */
  readonly healed: boolean;
}

export interface SessionEvents {
  message: Message;
  text: TextEvent;
  thinking: TextEvent;
  run: RunEvent;
  ask: Ask;
  ask_resolved: AskResolvedEvent;
  gap: GapEvent;
  state: StateEvent;
  quality: QualityEvent;
  rhythm: JsonObject;
  /** What a resume hook of the application brings along: `hook` and `data`. */
  hook: JsonObject;
  input: InputEvent;
  digest: DigestEvent;
  error: RelayError;
}

/** Listeners of these take messages: with one of them no loop is needed. */
export const CONTENT_EVENTS: readonly (keyof SessionEvents)[] = [
  "message",
  "text",
  "thinking",
  "run",
  "ask",
  "ask_resolved",
  "gap",
  "digest",
];

type Listener<T> = (event: T) => void;

/** A listener that throws is reported as an uncaught error and disturbs nobody else. */
export function createEmitter() {
  const _listeners = new Map<keyof SessionEvents, Set<Listener<never>>>();
  const self = {
    on<K extends keyof SessionEvents>(name: K, listener: Listener<SessionEvents[K]>): () => void {
      const own: Listener<SessionEvents[K]> = (event) => listener(event);
      const known = _listeners.get(name) ?? new Set();
      _listeners.set(name, known.add(own));
      return () => known.delete(own);
    },

    has(names: readonly (keyof SessionEvents)[]): boolean {
      return names.some((name) => (_listeners.get(name)?.size ?? 0) > 0);
    },

    emit<K extends keyof SessionEvents>(name: K, event: SessionEvents[K]): void {
      for (const listener of [...(_listeners.get(name) ?? [])] as Listener<SessionEvents[K]>[]) {
        try {
          listener(event);
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
  return self;
}

export type Emitter = ReturnType<typeof createEmitter>;
