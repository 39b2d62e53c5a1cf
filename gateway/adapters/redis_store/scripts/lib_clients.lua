-- What is known of a client beyond its route: fields of the clients hash; values, tabs between: when last seen (ms), input
-- seq, hash of that input, last acknowledged cursor, retry count.

local function read_client(clients, client)
  local seen, input_seq, input_hash, cursor, retries =
    string.match(redis.call('HGET', clients, client) or '', '^(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t(%d+)')
  if not seen then
    return { seen = '0', input_seq = '0', input_hash = '', cursor = '', retries = '0' }
  end
  return { seen = seen, input_seq = input_seq, input_hash = input_hash, cursor = cursor, retries = retries }
end

-- The longest unseen one goes when there are too many.
local function store_client(clients, client, known, now)
  local is_new = redis.call('HSET', clients, client, digits(now) .. '\t' .. known.input_seq .. '\t' .. known.input_hash .. '\t'
    .. known.cursor .. '\t' .. known.retries)
  if is_new == 1 then
    if redis.call('HLEN', clients) > KNOWN_CLIENTS_MAX then
      local stored = redis.call('HGETALL', clients)
      local oldest, oldest_seen
      for i = 1, #stored, 2 do
        local seen = tonumber(string.match(stored[i + 1], '^%d+'))
        if stored[i] ~= client and (not oldest or seen < oldest_seen) then
          oldest, oldest_seen = stored[i], seen
        end
      end
      redis.call('HDEL', clients, oldest)
    end
    keep(clients, META_MS) -- not less than an ask or a kept push has asked for
  end
end

-- An acknowledgement on a line; never back on the same line.
local function acknowledge(known, line, seq)
  local known_line, known_seq = string.match(known.cursor, '^(.*)%.(%d+)$')
  if known_line ~= line or tonumber(known_seq) < tonumber(seq) then
    known.cursor = line .. '.' .. seq
  end
end
