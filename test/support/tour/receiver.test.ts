import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { type Receiver, startReceiver } from './receiver.ts';

const OLD = `whsec_${Buffer.from('an old secret of 24 byte').toString('base64')}`;
const NEW = `whsec_${Buffer.from('a newer secret, 24 bytes').toString('base64')}`;

async function start(readSecrets: () => Promise<readonly string[]>): Promise<Receiver> {
  const receiver = await startReceiver({ port: 0, readSecrets });
  onTestFinished(receiver.stop);
  return receiver;
}

async function send(receiver: Receiver, id: string, secret: string, body = '{}'): Promise<number> {
  const now = new Date();
  const response = await fetch(`http://127.0.0.1:${receiver.port}/hooks`, {
    method: 'POST',
    headers: {
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1_000)}`,
      'webhook-signature': new Webhook(secret).sign(id, now, '{}'),
      'x-sluice-event-type': 'order.created',
      'x-sluice-group-key': Buffer.from('Kundin 42 ä').toString('latin1'),
    },
    body,
  });
  return response.status;
}

test('verifies each delivery, and reads the secret again if it does not match', async () => {
  let secrets = [OLD];
  let reads = 0;
  const receiver = await start(async () => {
    reads++;
    return secrets;
  });
  expect(await send(receiver, 'a', OLD)).toBe(200);
  expect(await send(receiver, 'b', OLD)).toBe(200);
  expect(reads).toBe(1);
  secrets = [NEW];
  expect(await send(receiver, 'c', NEW)).toBe(200);
  expect(reads).toBe(2);
  expect(receiver.received()[0]).toMatchObject({
    id: 'a',
    type: 'order.created',
    groupKey: 'Kundin 42 ä',
    status: 200,
  });
});

test('verifies a body that is not text', async () => {
  const receiver = await start(async () => [OLD]);
  const body = Buffer.from([0x1f, 0x8b, 0xff, 0x00]);
  const { key } = new Webhook(OLD) as unknown as { key: Uint8Array };
  const timestamp = `${Math.floor(Date.now() / 1_000)}`;
  const signature = createHmac('sha256', key).update(`a.${timestamp}.`).update(body).digest('base64');
  const headers = { 'webhook-id': 'a', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,old v1,${signature}` };
  for (const bytes of [body, body.subarray(1)])
    await fetch(`http://127.0.0.1:${receiver.port}/hooks`, { method: 'POST', headers, body: bytes });
  expect(receiver.received()).toMatchObject([
    { signature: 'valid', status: 200 },
    { signature: { refusal: 'No matching signature found' }, status: 401 },
  ]);
});

test.each([
  ['by another secret', NEW, '{}', 'No matching signature found'],
  ['for another body', OLD, '{"more":1}', 'No matching signature found'],
])('refuses requests that were signed %s', async (_what, secret, body, refusal) => {
  const receiver = await start(async () => [OLD]);
  expect(await send(receiver, 'a', secret, body)).toBe(401);
  expect(receiver.received()[0]?.signature).toEqual({ refusal });
});

test('refuses all requests if there is no secret', async () => {
  const receiver = await start(async () => []);
  expect(await send(receiver, 'a', OLD)).toBe(401);
});

test('fails as often as requested, including requests over HTTP', async () => {
  const receiver = await start(async () => [OLD]);
  receiver.failNext(1);
  expect([await send(receiver, 'a', OLD), await send(receiver, 'a', OLD)]).toEqual([503, 200]);
  const answer = await fetch(`http://127.0.0.1:${receiver.port}/fail?next=1`, { method: 'POST' });
  expect(await answer.text()).toBe('the next 1 deliveries are answered with 503\n');
  expect([await send(receiver, 'b', OLD), await send(receiver, 'b', OLD)]).toEqual([503, 200]);
});

test('lists received events, and each event only after it was accepted', async () => {
  const receiver = await start(async () => [OLD]);
  receiver.failNext(1);
  const listed = fetch(`http://127.0.0.1:${receiver.port}/received?id=a`);
  for (const id of ['a', 'b', 'a']) await send(receiver, id, OLD);
  const text = await (await listed).text();
  const found = text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as object);
  expect(found).toMatchObject([
    { id: 'a', status: 503, signature: 'valid' },
    { id: 'a', status: 200, body: '{}' },
  ]);
});

test('waits for an event, but no longer than requested', async () => {
  const receiver = await start(async () => [OLD]);
  const waiting = receiver.waitFor(({ id }) => id === 'a', 10_000);
  await send(receiver, 'a', OLD);
  expect(await waiting).toMatchObject({ id: 'a' });
  expect(await receiver.waitFor(({ id }) => id === 'b', 1)).toBeUndefined();
});
