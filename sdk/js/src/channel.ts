/** What every way to a gateway is: frames in, perhaps frames out, one end. */

import type { Ending } from "./endings.js";
import type { Query } from "./http.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";
import type { ChannelName } from "./states.js";

export interface ChannelRequest {
  readonly base: string;
  readonly settings: Settings;
  readonly query: Query;
  readonly token: string | null;
}

/** Called by a channel, in order. After `ended` or `close` nothing is called any more, whatever its transport does. */
export interface ChannelSink {
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
  readonly name: ChannelName;
  /** Acks, pings, inputs and controls can be sent by it; else they go by HTTP. */
  readonly isDuplex: boolean;
  /** False when it is not open. */
  send(text: string): boolean;
  /** Done with it: also a transport that never notices that it is dead is let go. */
  close(isDead: boolean): void;
}

export type OpenChannel = (platform: Platform, request: ChannelRequest, sink: ChannelSink) => Channel;
