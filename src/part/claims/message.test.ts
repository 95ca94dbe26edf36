import { expect, test } from 'vitest';
import { parseEvents } from './message.ts';

const eventOf = (ref: string, body: string) => `${ref} 1 2 ${body.length} s1\nk{}${body}`;

test('the body of a claim does not keep the rest of its message in memory', () => {
  const message = Buffer.from(eventOf('a', 'small') + eventOf('b', 'x'.repeat(100_000)));
  const [small, large] = parseEvents(message);
  expect(small?.body?.toString()).toBe('small');
  expect(small?.body?.buffer.byteLength).toBeLessThanOrEqual(Buffer.poolSize);
  // This is most of the message, so it is not copied.
  expect(large?.body?.buffer).toBe(message.buffer);
});

test('bodies are not copied from a small message', () => {
  const message = Buffer.from(eventOf('a', '1') + eventOf('b', '2'));
  expect(parseEvents(message).map(({ body }) => body?.buffer)).toEqual([message.buffer, message.buffer]);
});
