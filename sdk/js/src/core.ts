/** The parts of one session, by which they find each other; and its life, from the place that was kept to the end. */

import { type Acks, createAcks } from "./acks.js";
import { type Conductor, createConductor } from "./conductor.js";
import { type Credentials, createCredentials } from "./credentials.js";
import { createDelivery, type Delivery } from "./delivery.js";
import { ClosedError, RelayError } from "./errors.js";
import { createEmitter, type Emitter, type StateEvent } from "./events.js";
import { createFeed, type Feed } from "./feed.js";
import { createKeeper, type Keeper } from "./keeper.js";
import { type ConnectOptions, readOptions, type Settings } from "./options.js";
import { watchPage } from "./page.js";
import { defaultPlatform, none, type Platform } from "./platform.js";
import { createQuality, type Quality } from "./quality.js";
import { createReception, type Reception } from "./reception.js";
import { createRecovery, type Recovery } from "./recovery.js";
import { createSpeech, type Speech } from "./speech.js";
import { MemoryStore } from "./store.js";
import { takePlace } from "./tab_place.js";
import { createRunTexts, type RunTexts } from "./texts.js";

/** What every part works with. */
export interface Surroundings {
  readonly platform: Platform;
  readonly settings: Settings;
}

export interface Core extends Surroundings {
  readonly emitter: Emitter;
  readonly texts: RunTexts;
  readonly credentials: Credentials;
  readonly quality: Quality;
  readonly acks: Acks;
  readonly intake: Feed;
  readonly delivery: Delivery;
  readonly reception: Reception;
  readonly recovery: Recovery;
  readonly speech: Speech;
  readonly keeper: Keeper;
  readonly conductor: Conductor;
  /** The place that was kept is known, or that there is none. */
  readonly started: Promise<void>;
  clientId: string;
  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  head: number | null;
  shown: StateEvent;
  error: RelayError | null;
  isOver: boolean;
  fail(code: string, message: string): void;
  show(event: StateEvent): void;
  /** For good. */
  finish(error: RelayError | null): void;
}

/** Throws RelayError `bad_options`. */
export function createCore(options: ConnectOptions): Core {
  const { platform: base = defaultPlatform(), store = new MemoryStore() } = options;
  const settings = readOptions(options, base.random);
  const { WebSocket = base.WebSocket, fetch = base.fetch } = options;
  const platform: Platform = Object.assign(Object.create(base), { WebSocket, fetch });
  const emitter = createEmitter();
  let _releaseLock = none;
  const core = {
    platform,
    settings,
    emitter,
    texts: createRunTexts(),
    credentials: createCredentials(options.token),
    clientId: "",
    head: null,
    shown: { state: "connecting", channel: null, cause: "", retryIn: null, url: "" },
    error: null,
    isOver: false,

    fail(code, message) {
      emitter.emit("error", new RelayError(code, message, true));
    },

    show(event) {
      core.shown = event;
      emitter.emit("state", event);
    },

    finish(error) {
      if (core.isOver) return;
      core.isOver = true;
      core.error = error;
      core.conductor.close();
      leavePage();
      core.acks.stop();
      core.reception.stop();
      core.speech.close(error ?? new ClosedError());
      _releaseLock();
      core.show({ ...core.shown, state: "closed", channel: null, cause: error?.message ?? "closed", retryIn: null });
      core.delivery.end(error);
      void core.keeper.writeOut();
    },
  } as { -readonly [K in keyof Core]: Core[K] };
  // In this order: some look at others when they are made.
  core.quality = createQuality(core);
  core.acks = createAcks(core);
  core.intake = createFeed(core);
  core.delivery = createDelivery(core);
  core.reception = createReception(core);
  core.recovery = createRecovery(core);
  core.speech = createSpeech(core);
  core.keeper = createKeeper(core, store);
  core.conductor = createConductor(core);
  const leavePage = watchPage(core);
  core.started = _start();
  return core;

  async function _start(): Promise<void> {
    const release = await takePlace(core, options);
    if (core.isOver) return release();
    _releaseLock = release;
    // What ends its loop is an error of this code: nobody else could tell the application.
    core.conductor.run().catch((error: unknown) => core.finish(new RelayError("internal", String(error))));
  }
}
