#!lua
-- input: one message of a client: in the outbox, shown to the session as `echo`, only then accepted (G12).
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 kept, 6 pending, 7 outbox, 8 routes, 9 absent
-- ARGV 1 incarnation, 2 head of the frames, 3 client, 4 its number, 5 digest of the payload, 6 connection that must own the
--      route, or empty, 7 its generation, 8 due note or empty, 9 item for the agent, 10 body of the echo
-- Result, lines of text:
--   a <line> <told head> <seq of the echo> <gateway>...
--   = <line> <head> 0 <gateway>...   a repeat of what was accepted
--   r <reason> <next number>
--   l            the client has no live route: its gateway claims again
--   m            nothing done: call `enter`, then again

-- include: lib_server
-- include: lib_due
-- include: lib_runs
-- include: lib_producers
-- include: lib_write
-- include: lib_clients
-- include: lib_routes
-- include: lib_outbox
-- include: lib_kept
-- include: lib_order

local META, CLIENTS, KEPT, PENDING, OUTBOX, ROUTES = KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local client, number, digest, connection, generation = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
local DIGEST_CHARS, DIGESTS = 20, 16 -- of so many inputs a repeat can be told from another body
local now = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return 'm'
end
w.clients = CLIENTS
release_pending(w, KEPT, PENDING)
local function finish(answer)
  close_writer(w)
  return answer
end

local known = read_client(CLIENTS, client)
local last = tonumber(known.input_seq)
local function accept(mark, seq)
  return finish(mark .. '\n' .. w.line .. '\n' .. writer_head(w) .. '\n' .. digits(seq) .. w.gateways)
end
local function refuse(reason)
  return finish('r\n' .. reason .. '\n' .. digits(last + 1))
end
if connection ~= '' then
  local text = redis.call('HGET', ROUTES, client)
  local route = text and parse_route(text)
  if not route or route.lease <= now then
    return finish('l')
  elseif not owns(route, connection, generation) then
    return refuse('superseded')
  end
end

digest = string.sub(digest, 1, DIGEST_CHARS)
local digests = {}
for one in string.gmatch(known.input_hash, '[^,]+') do
  digests[#digests + 1] = one
end
if number > last + 1 then
  return refuse('expected')
elseif number <= last then
  local before = digests[#digests - (last - number)]
  if before and before ~= digest then
    return refuse('conflict')
  end
  return accept('=', 0)
elseif not has_outbox_room(OUTBOX, #ARGV[9]) then
  return refuse('outbox_full')
elseif is_note_stale(ARGV[8], now) then
  return refuse('due_stale')
end

put_outbox(OUTBOX, ARGV[9])
local seq = write_message(w, 'o', '', '0', ARGV[10], false)
digests[#digests + 1] = digest
if #digests > DIGESTS then
  table.remove(digests, 1)
end
known.input_seq, known.input_hash = digits(number), table.concat(digests, ',')
store_client(CLIENTS, client, known, now)
keep(META, META_MS)
keep(CLIENTS, META_MS)
return accept('a', seq)
