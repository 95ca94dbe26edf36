import { expect, it } from 'vitest';
import { CONTEXT_HEADER_DEFAULTS, chooseHeaders } from './context-headers.ts';

it('uses the defaults if a stream does not specify any headers', () => {
  expect(chooseHeaders(undefined)).toEqual(CONTEXT_HEADER_DEFAULTS);
  expect(chooseHeaders({ eventType: ['x-type'] })).toEqual({ ...CONTEXT_HEADER_DEFAULTS, eventType: ['x-type'] });
});

it('takes an empty list at its word', () => {
  expect(chooseHeaders({ eventId: [] }).eventId).toEqual([]);
});

it('writes names in lower case and once, in the order given', () => {
  expect(chooseHeaders({ forward: ['X-Region', 'x-a', 'x-region'] }).forward).toEqual(['x-region', 'x-a']);
});

it('has defaults in lower case, since header names are compared so', () => {
  for (const names of Object.values(CONTEXT_HEADER_DEFAULTS)) expect(names.map(n => n.toLowerCase())).toEqual(names);
});
