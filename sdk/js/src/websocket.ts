/** The first rung: a WebSocket. Credentials go in a subprotocol item, since browsers can set no header. */

import type { Channel, ChannelRequest, ChannelSink } from "./channel.js";
import { broken } from "./endings.js";
import { socketUrl } from "./http.js";
import { BadFrame, readJson } from "./messages.js";
import type { Platform, SocketLike } from "./platform.js";

const SUBPROTOCOL = "relayrouter.v1";
/** What may stand in a subprotocol item; other tokens go in a first `auth` message. */
const ITEM = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const OPEN = 1;

/** The socket's end before `opened` tells nothing in a browser: ask the gateway why. */
export function openWebSocket(platform: Platform, request: ChannelRequest, sink: ChannelSink): Channel {
  const { token } = request;
  const fitsItem = token !== null && ITEM.test(token);
  const protocols = fitsItem ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
  let socket: SocketLike | null = null;
  let wasOpen = false;

  const detach = () => {
    if (socket === null) return null;
    const old = socket;
    socket = null;
    old.onopen = old.onmessage = old.onclose = null;
    old.onerror = ignore; // some implementations throw an error that nobody hears
    return old;
  };
  const close = (isDead: boolean) => {
    const old = detach();
    try {
      if (isDead && old?.terminate) old.terminate();
      else old?.close(1000);
    } catch {
      // It never opened: there is nothing to close.
    }
  };

  if (platform.WebSocket === null) {
    queueMicrotask(() => sink.ended(broken("no WebSocket here")));
    return { name: "websocket", isDuplex: true, send: () => false, close: () => undefined };
  }
  socket = new platform.WebSocket(socketUrl(request.base, request.settings.session, request.query), protocols);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    wasOpen = true;
    if (token !== null && !fitsItem) send(JSON.stringify({ type: "control", payload: { kind: "auth", token } }));
    sink.opened();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return sink.heard(); // media: nothing that this reader asked for
    let envelope: unknown;
    try {
      envelope = readJson(data);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      close(false);
      return sink.ended(broken(error.message));
    }
    sink.frame(envelope, data.length);
  };
  socket.onerror = ignore; // `close` follows
  socket.onclose = ({ code, reason }) => {
    detach();
    if (!wasOpen) return sink.ended(broken("the upgrade failed"));
    // 1005 and 1006 are what this side makes up when no close frame came.
    sink.ended(code === 1005 || code === 1006 ? broken("the connection broke") : { kind: "closed", code, reason });
  };

  function send(text: string): boolean {
    if (socket?.readyState !== OPEN) return false;
    socket.send(text);
    return true;
  }
  return { name: "websocket", isDuplex: true, send, close };
}

const ignore = (): void => undefined;
