/** A page for React in Node, with Node's own network. */
import { Window } from "happy-dom";

const window = new Window({ url: "http://localhost/" });
const globals = {
  window,
  document: window.document,
  navigator: { userAgent: "test", onLine: true }, // without locks, as Node 20 is
  requestAnimationFrame: (fn: () => void) => setTimeout(fn, 1),
  cancelAnimationFrame: (id: ReturnType<typeof setTimeout>) => clearTimeout(id),
  IS_REACT_ACT_ENVIRONMENT: false,
};
for (const [name, value] of Object.entries(globals)) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
