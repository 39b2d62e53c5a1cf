#!lua
-- bury: items of one shard go to its dead letters.
-- KEYS 1 stream, 2 its bytes, 3 dead letters
-- ARGV 1 reason, then entries
-- Result: how many went; the others are not there, or there is no room

-- include: lib_server
-- include: lib_inbox

local buried, holders = 0, {}
for i = 2, #ARGV do
  if bury_item(KEYS[1], KEYS[2], KEYS[3], ARGV[i], item_of(KEYS[1], ARGV[i]), ARGV[1], holders) then
    buried = buried + 1
  end
end
if buried > 0 then
  tidy(KEYS[1], KEYS[2], holders)
end
return buried
