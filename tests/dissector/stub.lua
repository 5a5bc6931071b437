-- The part of Wireshark's Lua interface that the plugin uses, written down instead of shown. It runs in any Lua.

local written = {}
local function write(...) written[#written + 1] = table.concat({ ... }, " ") end

local function integer(value)
  -- Wireshark takes a float for an integer only where it is a whole number.
  if type(value) ~= "number" or value % 1 ~= 0 then error("an integer is expected, not " .. tostring(value), 2) end
  return string.format("%d", value)
end

local function any(value)
  if type(value) == "number" then
    if value % 1 == 0 then return string.format("%d", value) end
    return string.format("%.9f", value)
  end
  if type(value) == "table" and value.text then return value.text end
  return tostring(value)
end

local words = setmetatable({}, { __index = function(_, key) return key end })
base, frametype = words, words
expert = { group = words, severity = words }
bit, bit32 = nil, bit32

local function made(_, kind)
  return function(abbreviation, ...) return { abbreviation = abbreviation, kind = kind } end
end
ProtoField = setmetatable({}, { __index = made })
ProtoExpert = { new = function(abbreviation, text) return { abbreviation = abbreviation, text = text } end }
Pref = setmetatable({}, { __index = function() return function(_, default) return default end end })
Dissector = { get = function(name) return { name = name } end }
DissectorTable = { get = function()
  return { add = function() end, remove = function() end, add_for_decode_as = function() end }
end }
Listener = { new = function() return {} end }
function gui_enabled() return false end
statistics = {}
function register_stat_cmd_arg(name, start) statistics[#statistics + 1] = name end
UInt64 = { new = function(low, high) return { text = integer(low) .. ":" .. integer(high) } end }
NSTime = { new = function(seconds, nanoseconds) return { text = integer(seconds) .. "." .. integer(nanoseconds) } end }

function Proto(name, title)
  proto = { name = name, prefs = {}, abbreviation = name }
  return proto
end

Tvb = {}
Tvb.__index = Tvb
local function tvb_of(data, offset, length)
  return setmetatable({ data = data, at = offset, reported = length }, Tvb)
end
function Tvb:captured_len() return #self.data end
Tvb.len = Tvb.captured_len
function Tvb:reported_len() return self.reported end
function Tvb:offset() return self.at end
function Tvb:raw(offset, length)
  integer(offset)
  integer(length)
  assert(offset >= 0 and length > 0 and offset + length <= #self.data, "outside of the frame")
  return self.data:sub(offset + 1, offset + length)
end
function Tvb.__call(self, offset, length)
  offset, length = offset or 0, length or #self.data
  assert(offset >= 0 and length >= 0 and offset + length <= #self.data, "outside of the frame")
  return { text = integer(offset) .. "+" .. integer(length) }
end

ByteArray = { new = function(data, raw)
  assert(raw == true)
  return { tvb = function() return tvb_of(data, 0, #data) end }
end }

local Tree = { visible = true }
Tree.__index, TreeItem = Tree, Tree
function Tree:add(field, range, value)
  write(field.abbreviation, range.text or "", value ~= nil and any(value) or "")
  return self
end
Tree.add_le = Tree.add
function Tree:referenced() return true end
function Tree:set_generated() return self end
function Tree:append_text(text) write("append", text) return self end
function Tree:set_text(text) write("text", text) return self end
function Tree:add_proto_expert_info(which, text) write(which.abbreviation, text or which.text) end

local cols = setmetatable({}, { __newindex = function(_, name, value) write(name, value) end })

-- Has a frame dissected twice, as it comes by and later again. Returns what was written.
function dissect(number, time, destination, source, data, reported, visited)
  written = {}
  local pinfo = {
    number = number, rel_ts = time, dl_dst = destination, dl_src = source, match = 0x86DF, visited = visited, cols = cols,
  }
  proto.dissector(tvb_of(data, 14, reported), pinfo, setmetatable({}, Tree))
  return table.concat(written, "\n")
end
