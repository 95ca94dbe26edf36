import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createConnectionAddress } from '../client-address.ts';
import { createConnectionLimit, markReplaceable } from './connection-limit.ts';

const PROXY = '10.0.0.1';

function connectTo(limit: ReturnType<typeof createConnectionLimit>) {
  return (remoteAddress: string) => {
    const state = { isDestroyed: false };
    const destroy = () => {
      state.isDestroyed = true;
    };
    const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy }) as unknown as Socket;
    const isAccepted = limit.accept(socket);
    /** Receives a request, whose body is complete unless its client is slow. */
    function request({ complete = true } = {}) {
      const req = { socket, complete } as IncomingMessage;
      const response = Object.assign(new EventEmitter(), { req, writableEnded: false }) as unknown as ServerResponse;
      limit.serve(response);
      return {
        response,
        /** Completes the response. The client has not read it yet. */
        end: () => void Object.assign(response, { writableEnded: true }),
        close: () => void response.emit('close'),
      };
    }
    return { state, isAccepted, request, close: () => void socket.emit('close') };
  };
}

test('connections are limited by address and in total, and are counted until they are closed', () => {
  const closed: string[] = [];
  const limit = createConnectionLimit({
    connectionOf: createConnectionAddress([`${PROXY}/32`]),
    perAddress: 2,
    total: 5,
    onClosed: name => closed.push(name),
  });
  const open = connectTo(limit);
  const addresses = ['192.0.2.1', '192.0.2.1', '192.0.2.1', PROXY, PROXY, PROXY];
  const opened = addresses.map(address => open(address));
  expect(opened.map(({ isAccepted }) => isAccepted)).toEqual([true, true, false, true, true, true]);
  for (const { isAccepted, request } of opened) if (isAccepted) request();
  const accepts = (address: string) => {
    const { isAccepted, request } = open(address);
    if (isAccepted) request();
    return isAccepted;
  };
  expect([accepts('192.0.2.2'), limit.open(), closed]).toEqual([false, 5, ['address', 'total']]);
  opened[0]?.close();
  expect(limit.open()).toBe(4);
  // A connection that exceeds the total is not counted for its address.
  expect([accepts('192.0.2.1'), accepts(PROXY)]).toEqual([true, false]);
});

test('a new connection replaces the connection that has waited for its client for the longest time', () => {
  const limit = createConnectionLimit({ perAddress: 1, total: 5 });
  const open = connectTo(limit);
  const [processed, answered, silent, slow, unread] = Array.from({ length: 5 }, () => open('192.0.2.1'));
  processed?.request();
  slow?.request({ complete: false });
  unread?.request().end();
  const sent = answered?.request();
  sent?.end();
  sent?.close();
  const order = [silent, slow, unread, answered];
  const isClosed = () => order.map(each => each?.state.isDestroyed);
  for (let count = 1; count <= order.length; count++) {
    expect(open('192.0.2.2').isAccepted).toBe(true);
    expect(isClosed()).toEqual(order.map((_each, index) => index < count));
    expect(limit.open()).toBe(5);
  }
  expect(processed?.state.isDestroyed).toBe(false);
  // A connection that was closed for a new one is not counted anymore when its socket closes.
  silent?.close();
  expect(limit.open()).toBe(5);
});

test('a connection that was closed for a new one is not counted for its address', () => {
  const limit = createConnectionLimit({ connectionOf: createConnectionAddress([]), perAddress: 1, total: 1 });
  const open = connectTo(limit);
  const opened = ['192.0.2.1', '192.0.2.2', '192.0.2.1'].map(address => open(address));
  expect(opened.map(({ isAccepted }) => isAccepted)).toEqual([true, true, true]);
  opened[0]?.close();
  expect(open('192.0.2.1').isAccepted).toBe(false);
});

test('the response to an earlier request does not end the request in progress', () => {
  const limit = createConnectionLimit({ perAddress: 1, total: 1 });
  const open = connectTo(limit);
  const { request, state } = open('192.0.2.1');
  const earlier = request();
  request();
  earlier.end();
  earlier.close();
  expect([open('192.0.2.2').isAccepted, state.isDestroyed]).toEqual([false, false]);
});

test('a connection is kept while an earlier request is processed and a later one is incomplete', () => {
  const limit = createConnectionLimit({ perAddress: 1, total: 1 });
  const open = connectTo(limit);
  const { request, state } = open('192.0.2.1');
  const earlier = request();
  request({ complete: false });
  expect([open('192.0.2.2').isAccepted, state.isDestroyed]).toEqual([false, false]);
  earlier.end();
  expect([open('192.0.2.2').isAccepted, state.isDestroyed]).toEqual([true, true]);
});

test('a connection whose request will be refused is closed for a new one', () => {
  const limit = createConnectionLimit({ perAddress: 1, total: 2 });
  const open = connectTo(limit);
  const [processed, waiting] = [open('192.0.2.1'), open('192.0.2.1')];
  processed.request();
  markReplaceable(waiting.request().response);
  // This request starts after the one that is refused.
  waiting.request();
  const others = [open('192.0.2.2'), open('192.0.2.2')];
  expect(others.map(({ isAccepted }) => isAccepted)).toEqual([true, true]);
  expect([processed, waiting, others[0]].map(each => each?.state.isDestroyed)).toEqual([false, true, true]);
});

test('without trusted proxies, and without a total, there is no limit', () => {
  const limit = createConnectionLimit({ perAddress: 1 });
  const open = connectTo(limit);
  for (let index = 0; index < 10; index++) expect(open('192.0.2.1').isAccepted).toBe(true);
  expect(limit.open()).toBe(10);
});
