import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signingSecretName } from '../../../src/api/well-known.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { apply, kubectl, type Manifest, stream, subscription, waitForAll } from '../support/world.ts';
import { openPartnerInbox, type PartnerInbox } from './support/partner-inbox.ts';

const ORDERS = subscriptionObjectName('shop', 'ada', 'orders');

let inbox: PartnerInbox;
beforeAll(async () => {
  inbox = await openPartnerInbox(0);
});
afterAll(() => inbox?.stop());

const run = (args: string[], input?: string) => kubectl(inbox.world.installation.cluster, args, input);
const read = (what: string, path: string) => run(['get', what, '-n', 'ada', '-o', `jsonpath=${path}`]);
const mirrored = async (name: string) =>
  Buffer.from(await read(`secret/${signingSecretName(name)}`, '{.data.secret}'), 'base64').toString();
async function secretOverRest(id = inbox.pushed): Promise<string> {
  const { status, body } = await inbox.ada.get<{ secret: string }>(`${inbox.root}/subscriptions/${id}/secret`);
  expect(status).toBe(200);
  return body.secret;
}

/** Publishes an event and returns a function that checks whether its delivery was signed with a secret. */
async function deliver(id: string): Promise<(secret: string) => boolean> {
  await inbox.publisher.publish(makeSample(id, 'red', '{}'));
  await eventually(`${id} is delivered`, async () => inbox.receiver.delivered('ada').has(id));
  const { headers = {} } = inbox.receiver.attempts.findLast(attempt => attempt.id === id) ?? {};
  const signed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [name, String(headers[name])]);
  return secret => {
    try {
      new Webhook(secret).verify('{}', Object.fromEntries(signed) as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
}

test('a new subscription has a new secret, which is in use everywhere when the call returns', async () => {
  const seen: string[] = [];
  for (let n = 0; n < 3; n++) {
    const secret = await secretOverRest();
    expect(await mirrored(ORDERS)).toBe(secret);
    const isSignedWith = await deliver(`round.${n}`);
    expect(isSignedWith(secret)).toBe(true);
    for (const older of seen) expect(isSignedWith(older)).toBe(false);
    seen.push(secret);
    expect((await inbox.ada.remove(`${inbox.root}/subscriptions/${inbox.pushed}`)).status).toBe(204);
    const again = await inbox.ada.post<{ publicId: string }>(`${inbox.root}/subscriptions`, {
      catalogEntryPublicId: publicId('CatalogStream', 'shop', 'orders'),
      endpoint: { url: inbox.receiver.urlOf('ada'), retrySchedule: ['100ms', '1h'] },
    });
    expect(again).toMatchObject({ status: 201, body: { publicId: inbox.pushed } });
  }
  expect(new Set([...seen, await secretOverRest()]).size).toBe(4);
});

test('an endpoint that is added later has its secret when the call returns', async () => {
  const path = `${inbox.root}/subscriptions/${inbox.pulled}`;
  expect((await inbox.ada.put(path, { endpoint: { url: 'https://ada.example/hook' } })).status).toBe(200);
  expect(await secretOverRest(inbox.pulled)).toMatch(/^whsec_/);
});

test('a manifest that is applied again after its object was lost results in a new secret', async () => {
  const { cluster } = inbox.world.installation;
  const manifest: Manifest = subscription('ada', 'shop', 'stock', { url: inbox.receiver.urlOf('ada') });
  await apply(cluster, [stream('shop', 'stock')]);
  const secrets = new Set<string>();
  for (let n = 0; n < 2; n++) {
    await apply(cluster, [manifest]);
    await waitForAll(cluster, 'subscription', 'ada', 'Ready');
    const secret = await mirrored('shop-stock');
    expect(await secretOverRest(publicId('Subscription', 'ada', 'shop-stock'))).toBe(secret);
    secrets.add(secret);
    await run(['delete', 'subscription/shop-stock', '-n', 'ada', '--wait']);
  }
  expect(secrets.size).toBe(2);
});

test('the salt cannot be changed or removed', async () => {
  const salt = await read(`subscription/${ORDERS}`, '{.status.signing.salt}');
  expect(salt).toMatch(/^[A-Za-z0-9_-]{22}$/);
  for (const change of [{ salt: null }, { salt: 'A'.repeat(22) }, null]) {
    const patch = JSON.stringify({ status: { signing: change } });
    const line = ['patch', `subscription/${ORDERS}`, '-n', 'ada', '--subresource=status', '--type=merge', '-p', patch];
    await expect(run(line)).rejects.toThrow('status.signing.salt cannot be changed');
  }
  expect(await read(`subscription/${ORDERS}`, '{.status.signing.salt}')).toBe(salt);
});
