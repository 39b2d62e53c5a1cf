/** Frames as docs/media.md has them, and a session that takes them from a real gateway. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket as NodeWebSocket } from "ws";
import { connect } from "../../src/index.js";
import { readFrame, writeFrame } from "../../src/media/frame.js";
import { type MediaDropped, type MediaFrame, withMedia } from "../../src/media/index.js";
import type { SocketConstructor } from "../../src/platform.js";
import { hasGateway, RealGateway } from "../fakes/real_gateway.js";

const HEX = "01 02 05 03 02 00 00 00 07 00 00 00 00 00 00 03 e8 6d 65 63 61 6d 70 69 63";
const bytes = () => Uint8Array.from(HEX.split(" "), (pair) => Number.parseInt(pair, 16));
const text = (data: Uint8Array) => new TextDecoder().decode(data);

describe("a frame", () => {
  it("is read as documented, byte by byte", () => {
    const frame = readFrame(bytes().buffer);

    expect(frame && { ...frame, payload: text(frame.payload) }).toEqual({
      type: "video",
      source: "me",
      stream: "cam",
      sequence: 7,
      timestamp: 1_000,
      isKey: true,
      isDroppable: false,
      isEnd: true,
      payload: "pic",
    });
  });

  it("that is written is read again, without a source", () => {
    const sent = { type: "audio", stream: "mikrofön", sequence: 2 ** 32 - 1, timestamp: 5, isDroppable: true } as const;

    expect(readFrame(writeFrame({ ...sent, payload: bytes() }).buffer)).toEqual({
      ...sent,
      source: "",
      isKey: false,
      isEnd: false,
      payload: bytes(),
    });
  });

  it.each([
    ["nothing", new Uint8Array()],
    ["half a header", bytes().slice(0, 16)],
    ["no ids", bytes().slice(0, 20)],
    ["another version", bytes().with(0, 2)],
    ["another type", bytes().with(1, 3)],
  ])("that is none is ignored: %s", (_, data) => {
    expect(readFrame(data.buffer as ArrayBuffer)).toBeNull();
  });

  it.each(["", "x".repeat(129)])("needs a stream's id of 1 to 128 bytes", (stream) => {
    expect(() => writeFrame({ type: "audio", stream, sequence: 0, payload: bytes() })).toThrow(RangeError);
  });
});

/** A socket that does nothing of itself. */
class QuietSocket extends EventTarget {
  static readonly made: QuietSocket[] = [];
  readyState = 1;
  bufferedAmount = 0;
  binaryType = "";
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;
  readonly sent: unknown[] = [];

  constructor(readonly url: string) {
    super();
    QuietSocket.made.push(this);
  }

  send(data: unknown): void {
    this.sent.push(data);
  }

  close(): void {
    this.readyState = 3;
  }

  bring(data: unknown): void {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}

describe("withMedia", () => {
  const made = () => {
    const media = withMedia(
      { url: "http://gw", session: "s", WebSocket: QuietSocket as unknown as SocketConstructor },
      ["audio", "video/vp8"],
    );
    const frames: MediaFrame[] = [];
    const dropped: MediaDropped[] = [];
    media.on("media", (frame) => frames.push(frame));
    media.on("media_dropped", (told) => dropped.push(told));
    const open = () => {
      const Socket = media.options.WebSocket as SocketConstructor;
      return new Socket("ws://gw/v1/sessions/s/ws?client=c", []) as unknown as QuietSocket;
    };
    return { media, frames, dropped, open };
  };

  it("asks in the address of each socket", () => {
    expect(new URL(made().open().url).search).toBe("?client=c&caps=audio%2Cvideo%2Fvp8");
  });

  it("hands a frame out once, though both connections of a take-over bring it", () => {
    const { frames, open } = made();
    const [old, next] = [open(), open()];
    old.bring(bytes().buffer);
    next.bring(bytes().buffer);
    next.bring(bytes().with(8, 8).buffer);

    expect(frames.map(({ sequence }) => sequence)).toEqual([7, 8]);
  });

  it("tells what was dropped, and is not misled by a text about it", () => {
    const { dropped, open } = made();
    const socket = open();
    const payload = { kind: "media_dropped", count: 3, audio: 1, video: 2, audio_only: true };
    socket.bring(JSON.stringify({ type: "control", payload }));
    socket.bring(JSON.stringify({ type: "control", payload: { kind: "state", data: '"media_dropped"' } }));
    socket.bring(JSON.stringify({ type: "text", payload }));

    expect(dropped).toEqual([{ audio: 1, video: 2, isAudioOnly: true }]);
  });

  it("sends by the newest socket that was welcomed, and drops when it is full or gone", () => {
    const { media, open } = made();
    const frame = { type: "audio", stream: "mic", sequence: 1, payload: bytes() } as const;
    const before = media.send(frame);
    const socket = open();
    socket.bring("{}");
    const during = media.send(frame);
    socket.bufferedAmount = 64 * 1024 + 1;
    const full = media.send(frame);
    socket.bufferedAmount = 0;
    socket.close();

    expect([before, during, full, media.send(frame)]).toEqual([false, true, false, false]);
    expect(socket.sent.length).toBe(1);
  });
});

describe.skipIf(!hasGateway)("on a real gateway", () => {
  let gateway: RealGateway;
  beforeAll(async () => {
    gateway = await RealGateway.start();
  }, 30_000);
  afterAll(() => gateway.stop());

  it("frames cross between two sessions' clients, and text goes on", async () => {
    const WebSocket = NodeWebSocket as unknown as SocketConstructor;
    const common = { url: gateway.url, session: "s", from: "start", WebSocket } as const;
    const one = withMedia({ ...common, client: "one" }, ["media"]);
    const two = withMedia({ ...common, client: "two" }, ["audio"]);
    const sessions = [connect(one.options), connect(two.options), connect({ ...common, client: "plain" })];
    const got = new Promise<MediaFrame>((resolve) => two.on("media", resolve));
    const timer = setInterval(
      () => one.send({ type: "audio", stream: "mic", sequence: 1, timestamp: 1, payload: bytes() }),
      50,
    );
    const frame = await got;
    clearInterval(timer);
    await gateway.post("/v1/sessions/s/push", { payload: { kind: "note", n: 1 } });
    const kinds = await Promise.all(
      sessions.map(async (session) => {
        for await (const message of session) return message.kind;
        return null;
      }),
    );
    await Promise.all(sessions.map((session) => session.close()));

    expect([frame.source, frame.stream, frame.payload]).toEqual(["one", "mic", bytes()]);
    expect(kinds).toEqual(["note", "note", "note"]);
  }, 30_000);
});
