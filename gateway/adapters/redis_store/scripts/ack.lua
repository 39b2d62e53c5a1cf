#!lua flags=allow-oom
-- ack: items of one shard are done.
-- KEYS 1 stream, 2 its bytes
-- ARGV entries
-- Result: how many were still there

-- include: lib_server
-- include: lib_inbox

local acked, holders = 0, {}
for i = 1, #ARGV do
  local item = item_of(KEYS[1], ARGV[i])
  if item then
    remove_item(KEYS[1], KEYS[2], ARGV[i], item, holders)
    acked = acked + 1
  end
end
if acked > 0 then
  tidy(KEYS[1], KEYS[2], holders)
end
return acked
