/** A scripted gateway on a real port: welcomes whom connects, counts, answers inputs and controls. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

type Json = Record<string, unknown>;

export interface Peer {
  readonly socket: WebSocket;
  readonly query: URLSearchParams;
  readonly token: string | null;
}

export class FakeGateway {
  /** All that were ever accepted. */
  readonly peers: Peer[] = [];
  readonly inputs: Json[] = [];
  readonly controls: Json[] = [];
  /** Called for each input when it was accepted, and is not in the log yet. */
  onAccepted: (payload: Json) => void | Promise<void> = () => undefined;
  /** Called for each input when it is in the log. */
  onInput: (payload: Json) => void = () => undefined;
  onControl: (payload: Json) => void = () => undefined;
  #log: Json[] = [];
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "relayrouter.v1" });

  private constructor() {
    this.#server = createServer((_, response) => {
      response.setHeader("Content-Type", "application/json");
      response.end('{"ok":true}');
    });
    this.#server.on("upgrade", (request, socket, head) => {
      this.#sockets.handleUpgrade(request, socket, head, (accepted) => {
        const protocols = (request.headers["sec-websocket-protocol"] ?? "").split(/,\s*/);
        const bearer = protocols.find((each) => each.startsWith("bearer."));
        const query = new URL(request.url ?? "", "http://localhost").searchParams;
        this.#accept({ socket: accepted, query, token: bearer?.slice(7) ?? null });
      });
    });
  }

  static async start(): Promise<FakeGateway> {
    const gateway = new FakeGateway();
    await new Promise<void>((resolve) => gateway.#server.listen(0, "127.0.0.1", resolve));
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get open(): Peer[] {
    return this.peers.filter(({ socket }) => socket.readyState === socket.OPEN);
  }

  /** Into the log, and to everybody who is connected. */
  push(...payloads: Json[]): void {
    for (const payload of payloads) {
      const frame = { type: "text", seq: this.#log.length + 1, timestamp: 1, session_id: "s", payload };
      this.#log.push(frame);
      for (const { socket } of this.open) socket.send(JSON.stringify(frame));
    }
  }

  control(peer: Peer, payload: Json): void {
    peer.socket.send(JSON.stringify({ type: "control", timestamp: 1, session_id: "s", payload }));
  }

  async stop(): Promise<void> {
    for (const { socket } of this.peers) socket.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(peer: Peer): void {
    this.peers.push(peer);
    const cursor = peer.query.get("cursor");
    const from = cursor ? Number(cursor.split(".")[2]) : peer.query.get("from") === "start" ? 0 : this.#log.length;
    this.control(peer, {
      kind: "welcome",
      protocol: 1,
      connection: `c${this.peers.length}`,
      client: peer.query.get("client"),
      gateway: "g",
      cursor: `e.f.${from}`,
      head: this.#log.length,
      resumed: cursor ? "full" : "fresh",
      input_seq: this.inputs.length,
      heartbeat: 20,
      limits: { message_bytes: 65_536 },
    });
    for (const frame of this.#log.slice(from)) peer.socket.send(JSON.stringify(frame));
    peer.socket.on("message", (data) => void this.#take(peer, JSON.parse(String(data)) as Json));
  }

  async #take(peer: Peer, frame: Json): Promise<void> {
    const payload = frame.payload as Json;
    if (frame.type === "text") {
      this.inputs.push(payload);
      this.control(peer, { kind: "accepted", what: "input", seq: frame.seq });
      await this.onAccepted(payload);
      this.push({ kind: "echo", client: peer.query.get("client"), input_seq: frame.seq, payload });
      this.onInput(payload);
    } else if (payload.kind === "ping") this.control(peer, { ...payload, kind: "pong" });
    else if (payload.kind !== "ack") {
      this.controls.push(payload);
      this.control(peer, { kind: "accepted", what: payload.kind, id: payload.id, run: payload.run });
      this.onControl(payload);
    }
  }
}

/** Waits for what must become true. */
export async function until(what: string, isTrue: () => boolean, timeoutMs = 8_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!isTrue()) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
