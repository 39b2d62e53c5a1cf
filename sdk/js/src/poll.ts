/** The last rung: long poll, for networks that let nothing stay open. */

import { ask, endingOf } from "./ask.js";
import type { Channel, ChannelRequest, ChannelSink } from "./channel.js";
import type { Ending } from "./endings.js";
import { broken, NO_GATEWAY } from "./endings.js";
import { sessionUrl } from "./http.js";
import { numberOf, objectOf, textOf } from "./messages.js";
import type { Platform } from "./platform.js";

/** The first poll is there for its welcome. */
const FIRST_WAIT_SECONDS = 0.1;
const LIMIT = "500";
/** An answer without anything that comes sooner was no long poll: something between answers for the gateway. */
const LEAST_MS = 500;

export function openPoll(platform: Platform, request: ChannelRequest, sink: ChannelSink): Channel {
  const stop = new AbortController();
  void poll(platform, request, sink, stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending !== null) sink.ended(ending);
    stop.abort();
  });
  return { name: "poll", isDuplex: false, send: () => false, close: () => stop.abort() };
}

/** Resolves with how it ended; null when it was closed from this side. */
async function poll(
  platform: Platform,
  request: ChannelRequest,
  sink: ChannelSink,
  signal: AbortSignal,
): Promise<Ending | null> {
  const { cursor, ...query } = request.query;
  let since = cursor;
  let replaces = query.replaces;
  for (let count = 0; ; count++) {
    const wait = count === 0 ? FIRST_WAIT_SECONDS : request.settings.timing.pollWait / 1000;
    const url = sessionUrl(request.base, request.settings.session, "messages", {
      ...query,
      sdk: "1",
      limit: LIMIT,
      wait: String(wait),
      ...(since !== undefined && { since }),
      ...(replaces !== undefined && { replaces }),
    });
    const began = platform.now();
    const timeoutMs = wait * 1000 + request.settings.timing.connectTimeout;
    const reply = await ask(platform, { url, token: request.token, timeoutMs, signal });
    if (signal.aborted) return null;
    if (reply.refusal !== null) return endingOf(reply);
    const { frames, close, connection } = reply.body;
    if (!Array.isArray(frames)) return broken(NO_GATEWAY);
    if (count === 0) sink.opened();
    sink.heard();
    for (const frame of frames) {
      sink.frame(frame, frames.length && JSON.stringify(frame).length);
      if (signal.aborted) return null;
    }
    if (typeof reply.body.cursor === "string") since = reply.body.cursor;
    if (typeof connection === "string") replaces = connection;
    if (close) {
      return {
        kind: "closed",
        code: numberOf(objectOf(close).code) ?? 1011,
        reason: textOf(objectOf(close).reason),
      };
    }
    const isEmpty = frames.length <= 1 && count > 0;
    if (isEmpty && platform.now() - began < LEAST_MS) await pause(platform, LEAST_MS);
    await sink.room();
    if (signal.aborted) return null;
  }
}

const pause = (platform: Platform, ms: number): Promise<void> => new Promise((resolve) => platform.after(ms, resolve));
