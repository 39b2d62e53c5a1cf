-- The session's id, from the path, else `sid`, else X-Session-ID, as the header that is hashed. What a client sends as that header is not believed.
function envoy_on_request(handle)
  local headers = handle:headers()
  local path = headers:get(":path") or ""
  local id = path:match("^/v1/sessions/([^/?]+)") or path:match("^/v1/where/([^/?]+)")
    or path:match("[?&]sid=([^&]*)") or headers:get("x-session-id")
  headers:remove("x-relayrouter-session")
  if id then
    headers:add("x-relayrouter-session", id)
  end
end
