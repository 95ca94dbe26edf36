import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createConnectionAddress } from './client-address.ts';
import { createConnectionLimit } from './connection-limit.ts';

const PROXY = '10.0.0.1';

function connectTo(limit: ReturnType<typeof createConnectionLimit>) {
  return (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket;
    return { isAccepted: limit.accept(socket), close: () => void socket.emit('close') };
  };
}

test('connections are limited by address and in total, and count until they are closed', () => {
  const refused: string[] = [];
  const limit = createConnectionLimit({
    connectionOf: createConnectionAddress([`${PROXY}/32`]),
    perAddress: 2,
    total: 5,
    onRefused: name => refused.push(name),
  });
  const open = connectTo(limit);
  const accepts = (...addresses: string[]) => addresses.map(address => open(address).isAccepted);
  const first = open('192.0.2.1');
  expect(accepts('192.0.2.1', '192.0.2.1', PROXY, PROXY, PROXY)).toEqual([true, false, true, true, true]);
  expect([accepts('192.0.2.2'), limit.open(), refused]).toEqual([[false], 5, ['address', 'total']]);
  first.close();
  expect(limit.open()).toBe(4);
  // A connection that was refused in total does not count for its address.
  expect(accepts('192.0.2.1', PROXY)).toEqual([true, false]);
});

test('without trusted proxies, and without a total, there is no limit', () => {
  const limit = createConnectionLimit({ perAddress: 1 });
  const open = connectTo(limit);
  for (let index = 0; index < 10; index++) expect(open('192.0.2.1').isAccepted).toBe(true);
  expect(limit.open()).toBe(10);
});
