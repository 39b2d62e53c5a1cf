/** The second rung: server-sent events, read by fetch so that headers, statuses and back pressure are there. */

import { endingOf, readReply, requestInit } from "./ask.js";
import type { Channel, ChannelRequest, ChannelSink } from "./channel.js";
import { broken, NO_GATEWAY } from "./endings.js";
import { openEventSource } from "./event_source.js";
import { sessionUrl } from "./http.js";
import { BadFrame, numberOf, objectOf, readJson, textOf } from "./messages.js";
import type { Platform } from "./platform.js";

/** More of one event than any frame has. */
const MAX_EVENT_CHARS = 8 * 1024 * 1024;

/**
 * Server-sent events out of text that comes in any pieces. Lines end with LF, CR or CRLF and with nothing else; a
 * leading byte-order mark is skipped; comments are no events.
 */
export class EventParser {
  private _rest = "";
  private _isFirst = true;
  private _afterCr = false;
  private _name = "";
  private _data: string[] = [];
  private _size = 0;

  constructor(private readonly _onEvent: (name: string, data: string) => void) {}

  push(text: string): void {
    if (this._isFirst && text) {
      this._isFirst = false;
      if (text.startsWith("\ufeff")) text = text.slice(1);
    }
    if (this._afterCr && text) {
      this._afterCr = false;
      if (text.startsWith("\n")) text = text.slice(1);
    }
    const lines = (this._rest + text).split(/\r\n|\r|\n/);
    this._rest = lines.pop() ?? "";
    this._afterCr = text.endsWith("\r");
    for (const line of lines) this._line(line);
    if (this._rest.length + this._size > MAX_EVENT_CHARS) throw new BadFrame("an event without end");
  }

  private _line(line: string): void {
    if (line === "") return this._dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "event") this._name = value;
    if (field === "data") {
      this._data.push(value);
      this._size += value.length;
    }
  }

  private _dispatch(): void {
    const { _name: name, _data: data } = this;
    [this._name, this._data, this._size] = ["", [], 0];
    const text = data.join("\n");
    if (text !== "") this._onEvent(name || "message", text);
  }
}

export function openSse(platform: Platform, request: ChannelRequest, sink: ChannelSink): Channel {
  if (platform.EventSource) return openEventSource(platform, platform.EventSource, request, sink);
  const stop = new AbortController();
  void read(platform, request, sink, stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending !== null) sink.ended(ending);
    stop.abort();
  });
  return { name: "sse", isDuplex: false, send: () => false, close: () => stop.abort() };
}

/** Resolves with how it ended; null when it was closed from this side. */
async function read(platform: Platform, request: ChannelRequest, sink: ChannelSink, signal: AbortSignal) {
  const url = sessionUrl(request.base, request.settings.session, "events", { ...request.query, sdk: "1" });
  try {
    if (platform.fetch === null) return broken(NO_GATEWAY);
    const response = await platform.fetch(url, requestInit(request.token, signal, "text/event-stream"));
    if (!response.ok) return endingOf(await readReply(response));
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream") || response.body === null) {
      void response.body?.cancel();
      return broken(NO_GATEWAY);
    }
    sink.opened();
    return await readEvents(response.body.getReader(), sink, signal);
  } catch (error) {
    if (signal.aborted) return null;
    return broken(error instanceof BadFrame ? error.message : "the connection broke");
  }
}

async function readEvents(reader: ReadableStreamDefaultReader<Uint8Array>, sink: ChannelSink, signal: AbortSignal) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let close: { code: number; reason: string } | null = null;
  const parser = new EventParser((name, data) => {
    if (signal.aborted || close !== null) return;
    const value = readJson(data);
    if (name !== "close") return sink.frame(value, data.length);
    const { code, reason } = objectOf(value);
    close = { code: numberOf(code) ?? 1011, reason: textOf(reason) };
  });
  for (;;) {
    await sink.room();
    const { done, value } = await reader.read();
    if (signal.aborted) return null;
    if (done) break;
    sink.heard();
    parser.push(decoder.decode(value, { stream: true }));
    if (close !== null) break;
  }
  void reader.cancel().catch(() => undefined);
  return close === null
    ? broken("the connection broke")
    : { kind: "closed" as const, ...(close as object as { code: number; reason: string }) };
}
