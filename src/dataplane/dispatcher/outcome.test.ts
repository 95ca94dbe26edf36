import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ATTEMPT_OUTCOMES } from '../../api/delivery-status.ts';
import { ATTEMPT_REASONS, type AttemptReason, outcomeOf, SHOWN_OUTCOMES } from './outcome.ts';

const PAGE = new URL('../../../docs/deliveries.md', import.meta.url);

const RESULTS = {
  delivered: 'delivered',
  failed: 'retried',
  disabled: 'the endpoint is disabled',
} as const;

test('the page for partners lists every reason with its description and its result', () => {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split('## Response handling\n');
  const rows = section.split('\n').filter(line => /^\| `[a-z0-9_]+` \|/.test(line));
  const expected = Object.entries(ATTEMPT_REASONS).map(
    ([reason, meaning]) => `| \`${reason}\` | ${meaning} | ${RESULTS[outcomeOf(reason as AttemptReason)]} |`,
  );
  expect(rows).toEqual(expected);
});

test('a status has every outcome for some reason, and only 2xx is a success', () => {
  expect(new Set(Object.values(SHOWN_OUTCOMES))).toEqual(new Set([...Object.keys(ATTEMPT_OUTCOMES), undefined]));
  for (const [reason, shown] of Object.entries(SHOWN_OUTCOMES)) {
    expect(shown === 'Succeeded', reason).toBe(outcomeOf(reason as AttemptReason) === 'delivered');
  }
});
