/** The inbox of a single subscription. An inbox is written as `int/sub.inc`. */
export interface InboxRef {
  readonly integration: string;
  readonly sub: string;
  readonly inc: string;
}

export function inboxMember({ integration, sub, inc }: InboxRef): string {
  return `${integration}/${sub}.${inc}`;
}

export function parseInboxMember(member: string): InboxRef {
  const slash = member.indexOf('/');
  const dot = member.indexOf('.', slash);
  return { integration: member.slice(0, slash), sub: member.slice(slash + 1, dot), inc: member.slice(dot + 1) };
}

/** The replay to which a lane belongs (`lib/lanes.lua`). Undefined for first deliveries. */
export function replayOf(lane: string): string | undefined {
  const at = lane.indexOf('\x01');
  if (at < 0) return undefined;
  const end = lane.indexOf('\0', at);
  return lane.slice(at + 1, end < 0 ? undefined : end);
}

/** Replay ids are chosen by the caller: `[A-Za-z0-9_-]`, from 1 to 64 characters. */
export function isReplayId(text: string): boolean {
  return /^[\w-]{1,64}$/.test(text);
}
