import { expect, test } from 'vitest';
import { BODY_BYTES, buildRequest, readField, stamp } from './wire.ts';

test('a stamped request is valid HTTP with a JSON body of 1 KiB that reads back', () => {
  const request = buildRequest({ port: 1234, path: '/events', headers: { 'x-api-key': 'k' } }, 42);
  stamp(request, 7, 123_456_789_012, 65_432);
  const [head, body] = request.toString().split('\r\n\r\n') as [string, string];
  expect(head.split('\r\n')).toContain('x-sluice-group-key: key-042');
  expect(body).toHaveLength(BODY_BYTES);
  expect(JSON.parse(body)).toMatchObject({ run: '00007', sent: '000123456789012', key: '042', n: '00065432' });
  const at = request.length - BODY_BYTES;
  expect((['run', 'sent', 'key', 'n'] as const).map(field => readField(request, at, field))).toEqual([
    7, 123_456_789_012, 42, 65_432,
  ]);
});
