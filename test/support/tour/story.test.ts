import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { CommandResult } from '../kubernetes/kubectl.ts';
import { createNarrator } from './narrator.ts';
import type { Answer, Publication } from './publisher.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type Scene, tellClosedGate, tellDelivery, tellDuplicate, tellRefusals, tellRetries } from './story.ts';

/** Tests that the story detects failures. Sluice misbehaves on purpose, with a real endpoint. */

const SECRET = `whsec_${Buffer.from('a secret with 24 bytes..').toString('base64')}`;
const FORGED = `whsec_${Buffer.from('another one of 24 bytes.').toString('base64')}`;

const accepted = (id: string): Answer => ({
  status: 202,
  id,
  duplicate: false,
  code: undefined,
  sentAtMs: 0,
  answeredAtMs: 0,
});

async function deliver({ port }: Receiver, id: string, body: string, secret = SECRET): Promise<void> {
  const now = new Date();
  await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: {
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1_000)}`,
      'webhook-signature': new Webhook(secret).sign(id, now, body),
    },
    body,
  });
}

async function readSchedule(): Promise<CommandResult> {
  return { code: 0, stdout: '["1s","2s"]', stderr: '' };
}

async function scene(
  publish: (publication: Publication, receiver: Receiver) => Promise<Answer>,
  countNotActivated: () => Promise<number> = async () => 0,
): Promise<Scene> {
  const receiver = await startReceiver({ port: 0, readSecrets: async () => [SECRET] });
  onTestFinished(receiver.stop);
  return {
    narrator: createNarrator({ write: () => {}, nowMs: () => 0 }),
    cluster: { kubectl: readSchedule } as unknown as Cluster,
    receiver,
    publish: publication => publish(publication, receiver),
    countNotActivated,
    quietMs: 1,
  };
}

/** Returns the values one after another and then repeats the last value. */
function counting(...values: number[]): () => Promise<number> {
  return async () => (values.length > 1 ? values.shift() : values[0]) ?? 0;
}

test('a verified delivery of the same bytes is not a problem', async () => {
  const reported = await scene(async ({ data }, receiver) => {
    await deliver(receiver, 'a', JSON.stringify(data));
    return accepted('a');
  });
  await tellDelivery(reported);
  expect(reported.narrator.problems()).toEqual([]);
});

test.each([
  ['other bytes', (body: string) => ({ body: `${body} `, secret: SECRET })],
  ['a forged signature', (body: string) => ({ body, secret: FORGED })],
])('a delivery with %s is a problem', async (_what, change) => {
  const reported = await scene(async ({ data }, receiver) => {
    const { body, secret } = change(JSON.stringify(data));
    await deliver(receiver, 'a', body, secret);
    return accepted('a');
  });
  await tellDelivery(reported);
  expect(reported.narrator.problems()).toHaveLength(1);
});

test('a refused event is a problem', async () => {
  const reported = await scene(async () => ({ ...accepted('a'), id: undefined, status: 503, code: 'unavailable' }));
  await tellDelivery(reported);
  expect(reported.narrator.problems()).toHaveLength(1);
  expect(reported.narrator.problems()[0]).toContain('503 unavailable');
});

test('an event stored twice is a problem', async () => {
  const reported = await scene(async () => accepted('order-2'));
  await tellDuplicate(reported);
  expect(reported.narrator.problems()).toHaveLength(1);
});

test('the closed gate: reports a problem if the event is delivered, or counted twice', async () => {
  const kept = await scene(async () => accepted('a'), counting(4, 4, 5));
  await tellClosedGate(kept);
  expect(kept.narrator.problems()).toEqual([]);

  const twice = await scene(async () => accepted('a'), counting(4, 6));
  await tellClosedGate(twice);
  expect(twice.narrator.problems()).toHaveLength(1);

  const leaked = await scene(
    async (_publication, receiver) => {
      await deliver(receiver, 'a', '{}');
      return accepted('a');
    },
    counting(4, 5),
  );
  await tellClosedGate(leaked);
  expect(leaked.narrator.problems()).toHaveLength(1);
});

test('reports a problem for each request that should have been refused', async () => {
  const reported = await scene(async () => accepted('a'));
  await tellRefusals(reported);
  expect(reported.narrator.problems()).toHaveLength(2);
});

test('events that overtake a failing event are a problem', async () => {
  let number = 0;
  const reported = await scene(async ({ data }, receiver) => {
    const id = `e${++number}`;
    await deliver(receiver, id, JSON.stringify(data));
    return accepted(id);
  });
  await tellRetries(reported);
  expect(reported.narrator.problems()[0]).toContain('1 of 3 delivered, after 3 attempts');
});

test('retries before their time are a problem', async () => {
  let number = 0;
  const reported = await scene(async ({ data }, receiver) => {
    const id = `e${++number}`;
    for (let tries = number === 1 ? 3 : 1; tries > 0; tries--) await deliver(receiver, id, JSON.stringify(data));
    return accepted(id);
  });
  await tellRetries(reported);
  expect(reported.narrator.problems()[0]).toContain('3 of 3 delivered, after 5 attempts');
});
