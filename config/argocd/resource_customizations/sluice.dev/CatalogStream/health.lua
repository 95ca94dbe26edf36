-- Generated from tools/generate/argocd by tools/generate/generate.ts. Change it there.
-- The health of an object that is Ready, by the type and reason of its conditions.
local remarks = {
  ["Published/Deprecated"] = "Healthy",
}

local byType = {}
local status = obj.status or {}
for _, condition in ipairs(status.conditions or {}) do
  byType[condition.type] = condition
end

local function judge(health, conditions)
  local messages = {}
  for _, condition in ipairs(conditions) do
    table.insert(messages, condition.reason .. ": " .. condition.message)
  end
  return { status = health, message = table.concat(messages, "; ") }
end

local function whileTrue(name)
  return byType[name] ~= nil and byType[name].status == "True"
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "the object is being deleted" }
end
if byType.Ready == nil or status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the controller has not reconciled this generation yet" }
end
if whileTrue("Stalled") then
  return judge("Degraded", { byType.Stalled })
end
if byType.Ready.reason == "WorkspacePaused" then
  return judge("Suspended", { byType.Ready })
end
if obj.kind == "Workspace" and (obj.metadata.annotations or {})["sluice.dev/paused"] == "true" then
  return { status = "Suspended", message = "WorkspacePaused: the sluice.dev/paused annotation pauses this workspace" }
end
if byType.Ready.status ~= "True" then
  return judge("Progressing", { byType.Ready })
end
if whileTrue("Reconciling") then
  return judge("Progressing", { byType.Reconciling })
end

local found = { Healthy = {}, Progressing = {}, Degraded = {} }
for _, condition in ipairs(status.conditions) do
  local health = remarks[condition.type .. "/" .. condition.reason]
  if health ~= nil then
    table.insert(found[health], condition)
  end
end
if #found.Degraded > 0 then
  return judge("Degraded", found.Degraded)
end
if #found.Progressing > 0 then
  return judge("Progressing", found.Progressing)
end
if #found.Healthy > 0 then
  return judge("Healthy", found.Healthy)
end
return judge("Healthy", { byType.Ready })
