-- Asks, fields of the kept hash: `a:<ask>` an open one, `r:<ask>` its outcome, for a while; `w:<ask>` gateways that wait for it,
-- newline between. Both records: `<status> <seq> <expiry ms> <bytes of record, frame, resolution> <run or empty>`, newline,
-- record, frame, resolution. Status: o open, a answered, e expired, c cancelled.

local function parse_ask(text)
  local status, seq, expiry, record, frame, resolution, run, at =
    string.match(text, '^(%a) (%d+) (%d+) (%d+) (%d+) (%d+) ([^\n]*)\n()')
  local frame_at = at + record
  local resolution_at = frame_at + frame
  return {
    status = status, seq = seq, expiry = tonumber(expiry), run = run,
    record = string.sub(text, at, frame_at - 1), frame = string.sub(text, frame_at, resolution_at - 1),
    resolution = string.sub(text, resolution_at, resolution_at + resolution - 1),
  }
end

local function pack_ask(ask)
  return table.concat({ ask.status, ask.seq, digits(ask.expiry), #ask.record, #ask.frame, #ask.resolution, ask.run }, ' ')
    .. '\n' .. ask.record .. ask.frame .. ask.resolution
end
