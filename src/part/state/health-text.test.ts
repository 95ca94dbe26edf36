import { expect, test } from 'vitest';
import { parseEndpointHealth } from '../../core/delivery/endpoint-health.ts';
import { healthText } from './health-text.ts';

test.each([
  ['100 3 0 0 - ', { sinceMs: 100, failures: 3 }],
  ['100 30 2000 1000 - 0123abcdkey\x01r\0refrefref', { sinceMs: 100, failures: 30 }],
  ['100 3 0 0 500g ', { sinceMs: 100, failures: 3, disabled: { ms: 500, by: 'gone' } }],
  ['100 3 7 9 500f some probe', { sinceMs: 100, failures: 3, disabled: { ms: 500, by: 'failing' } }],
  ['', undefined],
  ['damaged', undefined],
])('%j is read', (text, health) => {
  expect(parseEndpointHealth(healthText(text))).toEqual(health);
});
