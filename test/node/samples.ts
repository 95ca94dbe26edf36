import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { INSTANCE_LABEL } from '../../src/api/well-known.ts';
import { ROOT } from '../chart/support/helm.ts';
import { eventually } from '../system/support/deadline.ts';
import { ingressKey } from '../system/support/world.ts';
import type { Platform } from './platform.ts';
import { type Delivery, signatureFor } from './receiver.ts';

const SAMPLES = join(ROOT, 'config', 'samples');
const KEY = 'an-ingress-key-of-acme';
const WITHIN_MS = 60_000;

/** The two workspaces of config/samples, or their copies for another installation. */
export interface Workspaces {
  readonly producer: string;
  readonly partner: string;
}

const SAMPLED: Workspaces = { producer: 'acme', partner: 'globex' };

/** Applies config/samples with other workspace names, for the installation of this name. */
export async function copySamples(platform: Platform, instance: string, names: Workspaces): Promise<void> {
  const rendered = await platform.kubectl(['kustomize', SAMPLES]);
  const renamed = rendered.replaceAll(SAMPLED.producer, names.producer).replaceAll(SAMPLED.partner, names.partner);
  const objects = parseAllDocuments(renamed).map(document => {
    const { kind, metadata, spec, ...rest } = document.toJS() as Sample;
    if (kind === 'Namespace') {
      return { ...rest, kind, metadata: { ...metadata, labels: { ...metadata.labels, [INSTANCE_LABEL]: instance } } };
    }
    return { ...rest, kind, metadata, spec: OWNED.has(kind) ? { ...spec, instance } : spec };
  });
  await platform.kubectl(['apply', '-f', '-'], objects);
}

interface Sample {
  readonly kind: string;
  readonly metadata: { readonly labels?: object };
  readonly spec?: object;
}

/** Kinds that specify their installation. */
const OWNED = new Set(['Account', 'Workspace']);

/**
 * Applies config/samples with the receiver as endpoint, publishes an event, and waits until it is delivered with a
 * valid signature.
 *
 * @param service name and namespace of the Service of the ingress role
 */
export async function deliverEvent(platform: Platform, service: { name: string; namespace: string }): Promise<void> {
  await platform.kubectl(['apply', '-k', SAMPLES]);
  await deliverBetween(platform, service, SAMPLED);
}

/** Does the same between workspaces created by `copySamples`. */
export async function deliverBetween(
  platform: Platform,
  service: { name: string; namespace: string },
  { producer, partner }: Workspaces,
): Promise<void> {
  const { kubectl, receiver } = platform;
  const patch = JSON.stringify({ spec: { endpoint: { url: receiver.url } } });
  await kubectl([
    'patch',
    `subscription.sluice.dev/${producer}-orders`,
    `-n=${partner}`,
    '--type=merge',
    `-p=${patch}`,
  ]);
  await kubectl(['apply', '-f', '-'], [ingressKey(producer, KEY)]);
  const until = (condition: string, object: string, namespace: string) =>
    kubectl(['wait', '--timeout=90s', `--for=condition=${condition}`, object, '-n', namespace]);
  await until('Live', `subscription.sluice.dev/${producer}-orders`, partner);
  await until('Effective', `activation.sluice.dev/${partner}-customer-42`, producer);

  const publish = await publisherTo(platform, service, producer);
  const id = randomUUID();
  const isAccepted = async () => (await publish({ id, groupKey: 'customer-42' })) === 202;
  await eventually('ingress accepts the event', isAccepted, { withinMs: WITHIN_MS });
  const isDelivered = () => Promise.resolve(receiver.deliveriesOf(id).length > 0);
  await eventually('the delivery', isDelivered, { withinMs: WITHIN_MS });
  const [delivery] = receiver.deliveriesOf(id) as [Delivery];
  expect(delivery.body).toBe('{"order":1}');
  const signing = ['get', `secret/${producer}-orders-signing`, `-n=${partner}`];
  const secret = await kubectl([...signing, '-o=jsonpath={.data.secret}']);
  const expected = signatureFor(delivery, Buffer.from(secret, 'base64').toString());
  expect(delivery.headers['webhook-signature']).toContain(expected);
}

/**
 * Returns a function that publishes an event to the stream of the samples and resolves to the response's status.
 *
 * @param service name and namespace of the Service of the ingress role
 */
export async function publisherTo(
  { kubectl }: Platform,
  service: { name: string; namespace: string },
  producer = SAMPLED.producer,
): Promise<(event: { id: string; groupKey: string }) => Promise<number>> {
  const read = (path: string, ...object: readonly string[]) => kubectl(['get', ...object, `-o=jsonpath=${path}`]);
  const address = await read('{.spec.clusterIP}', 'service', service.name, `-n=${service.namespace}`);
  const path = await read('{.status.ingressPath}', 'catalogstream.sluice.dev/orders', `-n=${producer}`);
  return async ({ id, groupKey }) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'webhook-id': id,
      'x-sluice-event-type': 'order.created',
      'x-sluice-group-key': groupKey,
    };
    const response = await fetch(`http://${address}${path}`, { method: 'POST', headers, body: '{"order":1}' });
    await response.body?.cancel();
    return response.status;
  };
}

/** Deletes the samples while their controllers are still running and waits until their namespaces have been deleted. */
export async function deleteSamples({ kubectl }: Platform, copies: readonly Workspaces[] = []): Promise<void> {
  const namespaces = [SAMPLED, ...copies].flatMap(({ producer, partner }) => [producer, partner]);
  await kubectl(['delete', 'waas', '--all', '--all-namespaces', '--timeout=60s']);
  await kubectl(['delete', 'waas-admin', '--all', '--timeout=60s']);
  await kubectl(['delete', 'namespace', ...namespaces, '--ignore-not-found', '--timeout=60s']);
}
