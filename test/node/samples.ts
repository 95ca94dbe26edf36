import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../chart/support/helm.ts';
import { eventually } from '../system/support/deadline.ts';
import { ingressKey } from '../system/support/world.ts';
import type { Platform } from './platform.ts';
import { type Delivery, signatureFor } from './receiver.ts';

const SAMPLES = join(ROOT, 'config', 'samples');
const KEY = 'an-ingress-key-of-acme';
const WITHIN_MS = 60_000;

/**
 * Applies config/samples with the receiver as endpoint, publishes an event, and waits until it is delivered with a
 * valid signature.
 *
 * @param service name and namespace of the Service of the ingress role
 */
export async function deliverEvent(platform: Platform, service: { name: string; namespace: string }): Promise<void> {
  const { kubectl, receiver } = platform;
  await kubectl(['apply', '-k', SAMPLES]);
  const patch = JSON.stringify({ spec: { endpoint: { url: receiver.url } } });
  await kubectl(['patch', 'subscription.sluice.dev/acme-orders', '-n=globex', '--type=merge', `-p=${patch}`]);
  await kubectl(['apply', '-f', '-'], [ingressKey('acme', KEY)]);
  const until = (condition: string, object: string, namespace: string) =>
    kubectl(['wait', '--timeout=90s', `--for=condition=${condition}`, object, '-n', namespace]);
  await until('Live', 'subscription.sluice.dev/acme-orders', 'globex');
  await until('Effective', 'activation.sluice.dev/globex-customer-42', 'acme');

  const read = (path: string, ...object: readonly string[]) => kubectl(['get', ...object, `-o=jsonpath=${path}`]);
  const address = await read('{.spec.clusterIP}', 'service', service.name, `-n=${service.namespace}`);
  const path = await read('{.status.ingressPath}', 'catalogstream.sluice.dev/orders', '-n=acme');
  const id = randomUUID();
  const publish = async () => {
    const response = await fetch(`http://${address}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'webhook-id': id,
        'x-sluice-event-type': 'order.created',
        'x-sluice-group-key': 'customer-42',
      },
      body: '{"order":1}',
    });
    return response.status;
  };
  await eventually('ingress accepts the event', async () => (await publish()) === 202, { withinMs: WITHIN_MS });
  const isDelivered = () => Promise.resolve(receiver.deliveriesOf(id).length > 0);
  await eventually('the delivery', isDelivered, { withinMs: WITHIN_MS });
  const [delivery] = receiver.deliveriesOf(id) as [Delivery];
  expect(delivery.body).toBe('{"order":1}');
  const secret = await read('{.data.secret}', 'secret/acme-orders-signing', '-n=globex');
  const expected = signatureFor(delivery, Buffer.from(secret, 'base64').toString());
  expect(delivery.headers['webhook-signature']).toContain(expected);
}

/** Deletes the samples while the controller still runs, and waits until their namespaces are gone. */
export async function deleteSamples({ kubectl }: Platform): Promise<void> {
  await kubectl(['delete', 'waas', '--all', '--all-namespaces', '--timeout=60s']);
  await kubectl(['delete', 'waas-admin', '--all', '--timeout=60s']);
  await kubectl(['delete', 'namespace', 'acme', 'globex', '--ignore-not-found', '--timeout=60s']);
}
