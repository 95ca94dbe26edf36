import { expect, test } from 'vitest';
import { LIMIT_NAMES } from '../../../api/kinds/account-limits.ts';
import { limitEntries } from './account-limits.ts';

test('every limit is listed, with null if there is no limit or no count', () => {
  const entries = limitEntries({ streams: 0, storedBytes: 10 }, { streams: 3, blocks: 0 });
  expect(Object.keys(entries)).toEqual(LIMIT_NAMES);
  expect(entries).toMatchObject({
    streams: { limit: 0, used: 3 },
    storedBytes: { limit: 10, used: null },
    blocks: { limit: null, used: 0 },
    packages: { limit: null, used: null },
  });
});
