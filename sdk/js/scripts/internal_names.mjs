/**
 * Members by which the parts of the core know each other: the build gives them short names. Only the core may use one,
 * and neither the wire, nor the public API, nor the environment has it (test/bundle.test.ts). `_x` is a class's own.
 */
const INTERNAL_NAMES = `
  acks afterMs answered apply arrivedAt askNow begins behind clientId climbDelayMs conductor dead delivery drain
  emit emitter ended fail failures fill finish forsake hasGap heard heartbeatMs hold intake isAnswered isControl
  isCut isCutByNext isDegraded isDuplex isFilled isFilling isFull isHealed isHeld isOver isProven isRenewable isSent
  isWelcome isWhole keeper keepInputs letGo lineId live loop lost mayPoll missed missing moved moveTo network
  nextDelayMs note opened openPoll openSse pong prepend proved pulse queue reception recovery refused requests
  restart restore room sample sampleOften sent settings settle show shown silence silentMs slot speech spread
  started streaming takeHistory target tooBig unpaused urls verify wake welcome welcomed welcomedAt writeOut
`;

export const internalNames = INTERNAL_NAMES.trim().split(/\s+/);

export const MANGLED = new RegExp(`^(_[a-z].*|${internalNames.join("|")})$`);
