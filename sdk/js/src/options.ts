/** What an application may choose, and what holds when it does not. Times are in ms. */

import { parseCursor } from "./cursor.js";
import { RelayError } from "./errors.js";
import { ownOrder } from "./gateway_order.js";
import type { FetchLike, Platform, SocketConstructor } from "./platform.js";
import { CHANNELS, type ChannelName } from "./states.js";
import type { CursorStore } from "./store.js";

/** Fetches credentials; called for every attempt. A call that fails is trouble that passes. */
export type TokenSource = () => Promise<string> | string;

export interface Timing {
  /** From the start of an attempt to the welcome. 10 s: a phone that wakes its radio needs several. */
  connectTimeout: number;
  backoffBase: number;
  backoffMax: number;
  /** A connection that lived so long, and was heard, starts the waits anew. */
  stableAfter: number;
  /** An unanswered probe means a dead connection. */
  probeTimeout: number;
  /** In the middle of a run: a silence after which the connection is probed. */
  runQuiet: number;
  /** Frames out of order are held for so long before what is missing is fetched. */
  reorder: number;
  ackBytes: number;
  ackAfter: number;
  /** Transport failures in a row before the next rung of the ladder. */
  ladderFailures: number;
  /** On a lower rung: when to try the one above (jittered by a quarter). */
  climbAfter: number;
  /** How long a long poll may wait; the gateway allows 55 s. */
  pollWait: number;
  /** Two connections at once, at most; then the old one is let go. */
  overlap: number;
}

const DEFAULT_TIMING: Timing = {
  connectTimeout: 10_000,
  backoffBase: 1_000,
  backoffMax: 30_000,
  stableAfter: 10_000,
  probeTimeout: 5_000,
  runQuiet: 3_000,
  reorder: 200,
  ackBytes: 32 * 1024,
  ackAfter: 250,
  ladderFailures: 3,
  climbAfter: 60_000,
  pollWait: 25_000,
  overlap: 10_000,
};

export interface ConnectOptions {
  /** Of the gateway, like `https://relay.example.com`. Of several the first is preferred; the others are tried in an order of chance. */
  url: string | readonly string[];
  session: string;
  /** A token, or how to get one. */
  token?: string | TokenSource | null;
  /** Id of this app instance. Default: the one kept in the store, else 96 random bits. */
  client?: string | null;
  /** Where to go on; default: the one kept in the store. */
  cursor?: string | null;
  /** For a client without a position. */
  from?: "live" | "start";
  channel?: "auto" | ChannelName;
  /** Of the gateway and of us: 5,000 to 25,000. Default: as the gateway says (20 s). */
  heartbeat?: number;
  /** Send something at least so often, for networks that cut what is quiet. */
  keepAlive?: number;
  /** Tell how tokens come (`rhythm` events), for animations. */
  rhythm?: boolean;
  /** Memory by default; `relayrouter/stores` has those of browsers. */
  store?: CursorStore;
  /** Whose place it is: with another one than is stored, everything that was kept is dropped. */
  user?: string | null;
  /** Inputs that may wait to be accepted. */
  queueItems?: number;
  queueBytes?: number;
  /** `whole`: sentences rather than tokens. `auto`: when the network or the page cannot follow. */
  segments?: "auto" | "asis" | "whole";
  timing?: Partial<Timing>;
  /** Where there is no global one (Node 20): that of the package `ws`. */
  WebSocket?: SocketConstructor;
  fetch?: FetchLike;
  /** For tests. Its functions are called without `this`. */
  platform?: Platform;
}

/** Checked, and complete but for the token. */
export interface Settings {
  /** In the order in which this session tries them. */
  readonly urls: readonly string[];
  readonly session: string;
  readonly from: "live" | "start";
  readonly channel: "auto" | ChannelName;
  readonly heartbeat: number | null;
  readonly keepAlive: number | null;
  readonly rhythm: boolean;
  readonly user: string | null;
  readonly queueItems: number;
  readonly queueBytes: number;
  readonly segments: "auto" | "asis" | "whole";
  readonly timing: Timing;
}

const DEFAULTS: Omit<Settings, "urls" | "timing"> = {
  session: "",
  from: "live",
  channel: "auto",
  heartbeat: null,
  keepAlive: null,
  rhythm: false,
  user: null,
  queueItems: 64,
  queueBytes: 1024 * 1024,
  segments: "auto",
};

/** Throws RelayError `bad_options` for what can never work. */
export function readOptions(options: ConnectOptions, random: () => number): Settings {
  const urls = ownOrder([options.url].flat(), random).map(checkBase);
  if (!options.session) throw bad("session is missing");
  if (options.cursor) parseCursor(options.cursor);
  const { timing, token: _, ...given } = options; // nothing that may be printed holds a token
  const settings = { ...DEFAULTS, ...withoutHoles(given), urls, timing: { ...DEFAULT_TIMING, ...timing } };
  const { heartbeat, channel } = settings;
  if (heartbeat !== null && !(heartbeat >= 5_000 && heartbeat <= 25_000)) throw bad("heartbeat: 5000 to 25000");
  if (channel !== "auto" && !CHANNELS.includes(channel)) throw bad("channel: auto, websocket, sse or poll");
  return settings;
}

/** `undefined` and null are the same as not given. */
const withoutHoles = (options: object): Partial<Settings> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));

function checkBase(text: string): string {
  try {
    const { href } = new URL(text.replace(/^ws/, "http"));
    if (/^https?:[^?#]+$/.test(href)) return href.replace(/\/+$/, "");
  } catch {
    // no URL at all
  }
  throw bad("url: like https://relay.example.com");
}

const bad = (message: string): RelayError => new RelayError("bad_options", message);
