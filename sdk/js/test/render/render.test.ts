// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { FrameBatch, renderText, TextNodes } from "../../src/render/index.js";
import { Segmenter } from "../../src/segmenter/index.js";
import { FakePage, FakeSession } from "./fake_page.js";

let page: FakePage;
let session: FakeSession;
let element: HTMLElement;
let writes: number;
const onWrite = (): void => {
  writes += 1;
};

beforeEach(() => {
  page = new FakePage();
  session = new FakeSession();
  element = document.createElement("p");
  writes = 0;
});

describe("FrameBatch", () => {
  it("flushes once a frame, however often something changed", () => {
    const seen: number[] = [];
    const batch = new FrameBatch((lateMs) => seen.push(lateMs), page);
    for (let count = 0; count < 100; count += 1) batch.request();
    page.draw();
    page.draw();
    batch.request();
    page.draw(20);
    expect(seen).toEqual([16, 20]);
    expect(page.waiting).toBe(0);
  });

  it("goes on by timer in a hidden page, and calls nothing late there", () => {
    const seen: number[] = [];
    const batch = new FrameBatch((lateMs) => seen.push(lateMs), page);
    page.hidden = true;
    batch.request();
    page.pass(249);
    expect(seen).toEqual([]);
    page.pass(1);
    expect(seen).toEqual([0]);
    expect(page.waiting).toBe(0);
  });
});

describe("renderText", () => {
  it("shows what is there at once, and what comes with one write a frame", () => {
    session.add("r", "Hello");
    renderText(session, "r", element, { clock: page, onWrite });
    expect(element.textContent).toBe("Hello");
    for (const word of [" wide", " world", "!"]) session.add("r", word);
    session.add("other", "not this");
    expect(element.textContent).toBe("Hello");
    page.draw();
    expect(element.textContent).toBe("Hello wide world!");
    expect(writes).toBe(2);
  });

  it("shows nothing twice that came with the run's announcement", () => {
    session.texts.set("r", "Hello");
    renderText(session, "r", element, { clock: page });
    session.emit("text", { run: "r", added: "Hello", isRewritten: false });
    session.add("r", " world");
    page.draw();
    session.add("r", "!");
    page.draw();
    expect(element.textContent).toBe("Hello world!");
  });

  it("appends to the text node that is there", () => {
    renderText(session, "r", element, { clock: page });
    session.add("r", "a");
    page.draw();
    const node = element.firstChild;
    session.add("r", "b");
    page.draw();
    expect(element.childNodes.length).toBe(1);
    expect(element.firstChild).toBe(node);
  });

  it("shows a rewritten text, and keeps what is the same", () => {
    renderText(session, "r", element, { clock: page });
    session.add("r", `${"x".repeat(4_000)}\n${"y".repeat(200)}`);
    page.draw();
    session.add("r", " more\nand more");
    page.draw();
    const first = element.firstChild;
    session.rewrite("r", `${"x".repeat(4_000)}\n${"y".repeat(200)} more\nother`);
    page.draw();
    expect(element.textContent).toBe(session.text("r"));
    expect(element.firstChild).toBe(first);
  });

  it("gathers no more than it must while no frame comes", () => {
    renderText(session, "r", element, { clock: page, onWrite });
    session.add("r", "z".repeat(1_024));
    const reads = session.reads;
    for (let count = 0; count < 63; count += 1) session.add("r", "z".repeat(1_024));
    page.draw();
    expect(session.reads).toBe(reads);
    for (let count = 0; count < 65; count += 1) session.add("r", "z".repeat(1_024));
    page.draw();
    expect(session.reads).toBe(reads + 1);
    expect(element.textContent).toBe(session.text("r"));
    expect(writes).toBe(3);
  });

  it("shows whole segments, and the rest when the run ends", () => {
    const segments = () => new Segmenter({ mode: "sentence", maxDelayMs: 500, firstImmediately: false });
    renderText(session, "r", element, { clock: page, segments });
    session.add("r", "One is here. Two is");
    page.draw();
    expect(element.textContent).toBe("One is here. ");
    session.add("r", " here. Thr");
    page.draw();
    expect(element.textContent).toBe("One is here. Two is here. ");
    session.add("r", "ee");
    session.end("r");
    expect(element.textContent).toBe("One is here. Two is here. Three");
  });

  it("holds half a segment no longer than its delay", () => {
    const segments = () => new Segmenter({ mode: "sentence", maxDelayMs: 500, firstImmediately: false });
    renderText(session, "r", element, { clock: page, segments });
    session.add("r", "Half");
    page.draw();
    page.pass(500);
    page.draw();
    expect(element.textContent).toBe("Half");
  });

  it("shows the reasoning where asked", () => {
    session.texts.set("r/thinking", "hm");
    renderText(session, "r", element, { clock: page, track: "thinking" });
    expect(element.textContent).toBe("hm");
  });

  it("tells the session when the page is late, and when no longer", () => {
    renderText(session, "r", element, { clock: page });
    session.add("r", "a");
    page.draw(2_500);
    expect(session.told).toEqual([2_500]);
    page.draw(16);
    expect(session.told).toEqual([2_500, 0]);
    page.draw(16);
    expect(page.waiting).toBe(0);
  });

  it("leaves nothing behind", () => {
    const stop = renderText(session, "r", element, { clock: page });
    session.add("r", "a");
    stop();
    page.draw();
    expect(element.textContent).toBe("");
    expect(session.listeners).toBe(0);
    expect(page.waiting).toBe(0);
  });
});

describe("TextNodes", () => {
  it("keeps nodes short, cuts at line ends where it can, and no character", () => {
    const nodes = new TextNodes(element);
    const text = `${"a".repeat(4_500)}\n${"👋".repeat(6_000)}\nend`;
    for (let at = 0; at < text.length; at += 1_001) nodes.append(text.slice(at, at + 1_001));
    expect(element.textContent).toBe(text);
    const parts = [...element.childNodes].map((node) => node.textContent ?? "");
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(8_192);
    expect(parts.length).toBeGreaterThan(2);
  });
});
