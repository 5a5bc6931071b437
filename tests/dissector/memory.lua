-- Says on standard error, when the capture has been read, how much memory tshark has used at most, and how much Lua
-- still needs; in KiB.

local listener = Listener.new("frame")
function listener.packet() end
function listener.reset() end
function listener.draw()
  local most = 0
  for line in io.lines("/proc/self/status") do most = tonumber(line:match("^VmHWM:%s*(%d+)")) or most end
  collectgarbage()
  collectgarbage()
  io.stderr:write(string.format("memory %d %d\n", most, collectgarbage("count")))
end
