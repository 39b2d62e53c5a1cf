/** What every way to a gateway is: frames in, perhaps frames out, one end. */

import type { Asker } from "./ask.js";
import type { Surroundings } from "./core.js";
import type { Ending } from "./endings.js";
import type { Query } from "./http.js";

/** Called by a channel, in order. After `ended` or `close` nothing is called any more, whatever its transport does. */
export interface ChannelSink extends Asker {
  /** The transport is there; a welcome may follow. */
  opened(): void;
  /** One envelope, parsed; `bytes` is about its size. */
  frame(envelope: unknown, bytes: number): void;
  /** A sign of life that is no frame. */
  heard(): void;
  ended(ending: Ending): void;
  /** Resolves when the application can take more; for transports that we may stop reading. */
  room(): Promise<void>;
}

export interface Channel {
  /** Of a channel that goes both ways. False when it is not open. */
  send?(text: string): boolean;
  /** Done with it: also a transport that never notices that it is dead is let go. */
  close(isDead: boolean): void;
}

export type OpenChannel = (around: Surroundings, sink: ChannelSink, query: Query) => Channel;

/** A channel that is read by requests. `read` resolves with how it ended; null when it was stopped by `signal`. */
export function reading(sink: ChannelSink, read: (signal: AbortSignal) => Promise<Ending | null>): Channel {
  const stop = new AbortController();
  const close = () => stop.abort();
  void read(stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending) sink.ended(ending);
    close();
  });
  return { close };
}
