import { expect, test } from 'vitest';
import { findPromtool } from './promtool.ts';
import { createRecording } from './recording.ts';

const promtool = findPromtool();
const RULES = `
groups:
  - name: few
    rules:
      - {alert: Low, expr: level < 1, for: 30s}
      - {alert: Down, expr: up == 0, for: 30s}
      - {alert: Rising, expr: "increase(total[1m]) > 5"}
`;

/** Returns the alerts which fire for these texts of a single process. There is a text for every 15 seconds. */
function firedFor(texts: readonly (string | undefined)[]): string[] {
  if (promtool === undefined) throw new Error('promtool is missing');
  const recording = createRecording(15);
  for (const text of texts) recording.add(new Map([['instance="a"', text]]));
  return recording.firedAlerts(promtool, RULES);
}

test.skipIf(promtool === undefined)('lists the alerts that have fired, even if they do not fire anymore', () => {
  expect(firedFor(['level 1', 'level 1', 'level 1', 'level 1'])).toEqual([]);
  expect(firedFor(['level 0', 'level 0', 'level 0', 'level 0', 'level 1', 'level 1'])).toEqual(['Low']);
  expect(firedFor(['level 0', 'level 0', 'level 1', 'level 0', 'level 0', 'level 1'])).toEqual([]);
  expect(firedFor(['level 1', undefined, undefined, undefined, undefined, 'level 1'])).toEqual(['Down']);
  expect(firedFor(['total 0', 'total 2', 'total 2', 'total 20', 'total 40'])).toEqual(['Rising']);
});
