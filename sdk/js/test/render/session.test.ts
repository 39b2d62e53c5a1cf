// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { connect, type Session, type SocketConstructor } from "../../src/index.js";
import { renderText } from "../../src/render/index.js";
import { FakeGateway, until } from "../fakes/gateway.js";
import { FakePage } from "./fake_page.js";

let gateway: FakeGateway;
let session: Session;

beforeEach(async () => {
  gateway = await FakeGateway.start();
  const socket = WebSocket as unknown as SocketConstructor;
  session = connect({ url: gateway.url, session: "s", from: "start", WebSocket: socket });
});

afterEach(async () => {
  await session.close();
  await gateway.stop();
});

it("a page that draws three seconds late gets whole sentences, with the same text", async () => {
  const page = new FakePage();
  const element = document.createElement("p");
  const added: string[] = [];
  session.on("text", (event) => added.push(event.added));
  const stop = renderText(session, "r", element, { clock: page });
  await until("connected", () => gateway.open.length === 1);
  gateway.push({ kind: "delta", run: "r", text: "One ", at: 0 });
  await until("taken", () => session.text("r") === "One ");
  page.draw(3_000);
  expect(session.quality.level).toBe("poor");

  gateway.push({ kind: "delta", run: "r", text: "two. ", at: 4 });
  for (const [index, text] of ["Three ", "four ", "five."].entries()) {
    gateway.push({ kind: "delta", run: "r", text, at: [9, 15, 20][index] });
  }
  await until("all", () => session.text("r") === "One two. Three four five.");
  page.draw(16);
  page.draw(16);
  expect(element.textContent).toBe("One two. Three four five.");
  expect(added).toEqual(["One ", "two. ", "Three four five."]);
  expect(session.quality.level).toBe("good");
  stop();
});
