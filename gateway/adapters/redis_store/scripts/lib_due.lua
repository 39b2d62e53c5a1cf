-- Due notes: what a state-writing script asks of its caller's note (due_note.lua).

-- `due`: the server's time at the note, or empty. Nothing may be written that needs one when this is true.
local function is_note_stale(due, now)
  return due == '' or now - due > DUE_NOTE_MS
end
