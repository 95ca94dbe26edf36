import { expect, test } from 'vitest';
import { createClosedLog } from './closed-connections.ts';

test('closed connections are logged once a minute, with their limit', () => {
  let nowMs = 0;
  const lines: (readonly [fields: object, text: string])[] = [];
  const log = { warn: (fields: object, text: string) => void lines.push([fields, text]) } as never;
  const onClosed = createClosedLog({ log, most: { total: 3, address: 2, unread: 1 }, nowMs: () => nowMs });
  onClosed('total');
  onClosed('address');
  nowMs = 59_999;
  onClosed('total');
  expect(lines).toEqual([
    [{ limit: 'total', most: 3 }, 'too many connections: the ones that wait for their client are closed'],
  ]);
  nowMs = 60_000;
  onClosed('address');
  expect(lines.slice(1)).toEqual([[{ limit: 'address', most: 2 }, 'too many connections: new ones are closed']]);
  nowMs = 120_000;
  onClosed('unread');
  expect(lines[2]?.[1]).toBe('too many bytes of responses that are not read: their connections are closed');
});
