-- Opens the plugin's windows once Wireshark has read the capture, and writes what they show to the file named in
-- MXWIRE_SHOWN. Loaded before the plugin.

local menus, windows, opened = {}, {}, false

local register, new = register_menu, TextWindow.new
_G.register_menu = function(name, action, group)
  menus[#menus + 1] = { name = name, action = action }
  return register(name, action, group)
end
TextWindow.new = function(title)
  local window = new(title)
  windows[#windows + 1] = window
  return window
end

local listener = Listener.new("frame")
function listener.packet() end
function listener.reset() end
function listener.draw()
  if opened then return end
  opened = true
  local file = assert(io.open(os.getenv("MXWIRE_SHOWN"), "w"))
  for place, each in ipairs(menus) do
    local done, problem = pcall(each.action)
    file:write("# ", each.name, "\n", done and windows[place]:get_text() or tostring(problem))
  end
  file:write("# end\n")
  file:close()
end
