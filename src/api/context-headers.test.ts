import { expect, it } from 'vitest';
import { CONTEXT_HEADER_DEFAULTS, chooseHeaders } from './context-headers.ts';

it('uses the defaults if a stream does not specify any headers', () => {
  expect(chooseHeaders(undefined)).toEqual(CONTEXT_HEADER_DEFAULTS);
  expect(chooseHeaders({ eventType: ['x-type'] })).toEqual({ ...CONTEXT_HEADER_DEFAULTS, eventType: ['x-type'] });
});

it('accepts an empty list', () => {
  expect(chooseHeaders({ eventId: [] }).eventId).toEqual([]);
});

it('writes names in lower case and once, in the given order', () => {
  expect(chooseHeaders({ forward: ['X-Region', 'x-a', 'x-region'] }).forward).toEqual(['x-region', 'x-a']);
});

it('has defaults in lower case because header names are compared in lower case', () => {
  for (const names of Object.values(CONTEXT_HEADER_DEFAULTS)) expect(names.map(n => n.toLowerCase())).toEqual(names);
});
