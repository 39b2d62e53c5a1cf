/**
 * Audio and video beside a session's text, for pages that want them: `relayrouter/media`. The core knows nothing of it: it
 * is given a WebSocket that asks for the capability, and from which the binary messages are read here.
 */

import type { ConnectOptions } from "../options.js";
import type { SocketConstructor, SocketLike } from "../platform.js";
import { type MediaFrame, type OutgoingFrame, readFrame, writeFrame } from "./frame.js";

export type { MediaFrame, OutgoingFrame } from "./frame.js";

/** Frames that did not come since the last time, because the connection had no room for them. */
export interface MediaDropped {
  readonly audio: number;
  readonly video: number;
  /** Video is held back for now. */
  readonly isAudioOnly: boolean;
}

export interface MediaEvents {
  media: MediaFrame;
  media_dropped: MediaDropped;
}

export interface Media {
  /** For `connect`. */
  readonly options: ConnectOptions;
  /** Returns how to stop listening. A listener that throws is reported as an uncaught error. */
  on<K extends keyof MediaEvents>(name: K, listener: (event: MediaEvents[K]) => void): () => void;
  /** To the others of the session. False: no socket takes it now, and it is dropped. */
  send(frame: OutgoingFrame): boolean;
}

/** While one connection takes over from another both bring a frame: so many are remembered. */
const REMEMBERED = 256;
/** More than this waits in the socket: media that waits is of no use. */
const MAX_UNSENT_BYTES = 64 * 1024;
const OPEN = 1;
const CONTROL = '{"type":"control"';

type Listening = SocketLike & {
  readonly bufferedAmount?: number;
  addEventListener?(name: "message", listener: (event: { data: unknown }) => void): void;
  send(data: string | Uint8Array<ArrayBuffer>): void;
};

/** `caps`: what is taken, like `["audio", "video/vp8"]`. Only a WebSocket carries media. */
export function withMedia(options: ConnectOptions, caps: readonly string[]): Media {
  const listeners = { media: new Set<(event: never) => void>(), media_dropped: new Set<(event: never) => void>() };
  const seen = new Set<string>();
  let latest: Listening | null = null;

  function emit<K extends keyof MediaEvents>(name: K, event: MediaEvents[K]): void {
    for (const listener of [...listeners[name]] as ((event: MediaEvents[K]) => void)[]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  function take(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      const frame = readFrame(data);
      if (frame === null) return;
      const name = JSON.stringify([frame.source, frame.stream, frame.sequence, frame.timestamp]);
      if (seen.has(name)) return;
      seen.add(name);
      for (const oldest of seen) {
        if (seen.size <= REMEMBERED) break;
        seen.delete(oldest);
      }
      emit("media", frame);
    } else if (typeof data === "string" && data.startsWith(CONTROL) && data.includes('"media_dropped"')) {
      const dropped = readDropped(data);
      if (dropped !== null) emit("media_dropped", dropped);
    }
  }

  const base = (options.WebSocket ??
    options.platform?.WebSocket ??
    scope.WebSocket ??
    null) as SocketConstructor | null;
  const asking =
    base &&
    class extends base {
      constructor(url: string, protocols: string[]) {
        const asked = new URL(url);
        asked.searchParams.set("caps", caps.join(","));
        super(asked.href, protocols);
        const socket = this as unknown as Listening;
        socket.addEventListener?.("message", ({ data }) => {
          latest = socket; // it is welcome: what is sent goes by it
          take(data);
        });
      }
    };
  return {
    options: asking ? { ...options, WebSocket: asking } : options,
    on(name, listener) {
      listeners[name].add(listener as (event: never) => void);
      return () => void listeners[name].delete(listener as (event: never) => void);
    },
    send(frame) {
      if (latest?.readyState !== OPEN || (latest.bufferedAmount ?? 0) > MAX_UNSENT_BYTES) return false;
      latest.send(writeFrame(frame));
      return true;
    },
  };
}

const scope = globalThis as unknown as { WebSocket?: SocketConstructor };

function readDropped(data: string): MediaDropped | null {
  const payload: unknown = (JSON.parse(data) as { payload?: unknown }).payload;
  if (typeof payload !== "object" || payload === null) return null;
  const { kind, audio, video, audio_only } = payload as Record<string, unknown>;
  if (kind !== "media_dropped") return null;
  return { audio: Number(audio) || 0, video: Number(video) || 0, isAudioOnly: audio_only === true };
}
