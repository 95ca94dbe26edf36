import type { EventProgress, EventState } from '../../core/events/event-state.ts';
import { msOfRef } from '../lanes/ref.ts';

const STATES: Readonly<Record<string, EventState>> = {
  p: 'pending',
  i: 'inflight',
  r: 'retrying',
  d: 'delivered',
  x: 'dead',
  X: 'dead',
  s: 'skipped',
  e: 'expired',
};
/** A dead letter which has been recovered before. */
const RECOVERED = 'X';
const OPEN = 'pir';

/** Reads a state that was returned by `details.lua`. If it is empty, this returns undefined. */
export function parseProgress(ref: string, text: string): EventProgress | undefined {
  const state = STATES[text[0] ?? ''];
  if (state === undefined) return undefined;
  const [last = '', ...failed] = text.slice(1).split(',');
  const timeOf = (age: string) => msOfRef(ref) + Number.parseInt(age, 16);
  const attemptOf = (age: string, result: string, latency: string) => ({
    atMs: timeOf(age),
    result,
    latencyMs: latency === '-' ? 0 : Number.parseInt(latency, 16),
  });
  const history = failed.map(each => {
    const [age = '0', result = '', latency = '-'] = each.split(' ');
    return attemptOf(age, result, latency);
  });
  if (OPEN.includes(text[0] as string)) {
    const [attempts = 0, , due] = last.split(' ').map(each => Number.parseInt(each, 10));
    // The attempts before it was recovered. The first field only counts the attempts of the current retry schedule.
    const earlier = Number(last.split('*')[1] ?? 0);
    const progress = { state, attempts: earlier + attempts, history };
    // If the response was a 410, there is nothing due until the endpoint has been re-enabled.
    return state === 'retrying' && due !== 0 ? { ...progress, dueMs: due as number } : progress;
  }
  const [age = '0', attempts = '0', reason = '', latency = '-'] = last.split(' ');
  if (latency !== '-') history.push(attemptOf(age, reason, latency));
  const recovered = text[0] === RECOVERED ? { recovered: true as const } : {};
  return { state, attempts: Number.parseInt(attempts, 16), history, endedMs: timeOf(age), reason, ...recovered };
}
