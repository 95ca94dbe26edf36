import { z } from 'zod';
import { ENDPOINT_DEFAULTS, type Endpoint } from '../../../api/endpoint.ts';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { ROTATION_OVERLAP_MS, signingSecret, signingVersions } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { ownedPart } from '../../../kube/managed-fields.ts';
import type { Cached } from '../../caches/cached.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { assertStream } from '../streams/producer-stream.ts';
import { SubscriptionEntry } from './subscription-views.ts';
import { entryOf, readSubscription } from './subscriptions.ts';

const version = (description: string) => z.int().min(1).max(1_000_000).meta({ description, example: 2 });
const secret = (description: string) => z.string().meta({ description, example: 'whsec_…' });

const SigningSecrets = z
  .object({
    secretVersion: version('The version of the secret, incremented by one with each rotation.'),
    secret: secret(
      'The secret used for signing deliveries (Standard Webhooks), consisting of whsec_ and a base64 string.',
    ),
    previous: z
      .object({
        secret: secret('The previous secret. Until the given time, Sluice also signs deliveries with this secret.'),
        until: z.string().meta({
          format: 'date-time',
          description:
            'The time (RFC 3339) at which Sluice stops using the secret, which is 24 hours after the rotation.',
        }),
      })
      .nullable()
      .meta({ description: 'The previous secret, or null if the rotation was more than 24 hours ago.' }),
  })
  .meta({ id: 'SigningSecrets' });

const Rotation = z
  .strictObject({
    secretVersion: version(
      'The version to rotate to, which must be the current version plus 1. You can also send it within 24 hours of the last rotation.',
    ).optional(),
  })
  .meta({ id: 'Rotation' });

function endpointOf({ spec }: Cached<'Subscription'>): Endpoint {
  if (spec.endpoint === undefined) throw new Refusal('no_endpoint');
  return spec.endpoint;
}

const versionOf = ({ secretVersion }: Endpoint): number => secretVersion ?? ENDPOINT_DEFAULTS.secretVersion;

/** Returns whether the secret has been rotated within the last 24 hours or is about to be rotated. */
function isRotating({ wallMs }: Pick<Facade, 'wallMs'>, subscription: Cached<'Subscription'>): boolean {
  const current = versionOf(endpointOf(subscription));
  const { version = current, rotatedAt } = subscription.status?.signing ?? {};
  return current > version || signingVersions(current, msOf(rotatedAt), wallMs()).length > 1;
}

function msOf(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}

/**
 * Returns the secrets recorded by the controller because only the controller selects the root key for a new version.
 * Until the controller has recorded the next version, deliveries may be signed with both versions, so the recorded
 * version is still valid.
 *
 * @throws Refusal 503 `not_in_force` if the controller has not recorded the salt, or more than one version, or without
 *   the root key
 */
export function secretsOf(
  { keys, wallMs }: Pick<Facade, 'wallMs'> & { readonly keys: Pick<Facade['keys'], 'key'> },
  subscription: Cached<'Subscription'>,
): z.output<typeof SigningSecrets> {
  const { metadata, status } = subscription;
  const wanted = versionOf(endpointOf(subscription));
  const { salt, version: recorded = wanted, rotatedAt, key, previousKey } = status?.signing ?? {};
  if (salt === undefined) throw new Refusal('not_in_force', 'The signing secret does not exist yet. Try again.');
  if (recorded !== wanted && recorded !== wanted - 1) {
    throw new Refusal('not_in_force', `Version ${wanted} of the signing secret is not in use yet. Try again.`);
  }
  const subscriptionId = publicId('Subscription', metadata.namespace ?? '', metadata.name);
  const secretOf = (version: number, id: string | undefined) => {
    const rootKey = keys.key(id)?.secret;
    return rootKey && signingSecret({ rootKey, subscriptionId, salt }, version);
  };
  const secret = secretOf(recorded, key);
  if (secret === undefined) {
    throw new Refusal('not_in_force', "The signing secret's root key is missing. Try again, or rotate the secret.");
  }
  const rotatedMs = msOf(rotatedAt);
  // The next version replaces the previous one.
  const [, previous] = recorded === wanted ? signingVersions(recorded, rotatedMs, wallMs()) : [];
  const before = previous === undefined ? undefined : secretOf(previous, previousKey);
  return {
    secretVersion: recorded,
    secret,
    previous:
      before === undefined || rotatedMs === undefined
        ? null
        : { secret: before, until: new Date(rotatedMs + ROTATION_OVERLAP_MS).toISOString() },
  };
}

/**
 * Changes the given endpoint fields even if other managers own the rest. Fields this manager applied earlier are
 * included too, since server-side apply would otherwise remove them. Nothing is written if the edit returns undefined.
 */
async function editEndpoint(
  facade: Facade,
  integration: OwnedIntegration,
  id: string,
  edit: (endpoint: Endpoint, before: Cached<'Subscription'>) => Partial<Endpoint> | undefined,
): Promise<Cached<'Subscription'>> {
  const { writer } = facade;
  await assertActive(facade, integration);
  const applied = await writer.edit(async () => {
    const before = await readSubscription(facade, integration, id);
    await assertStream(facade, integration.producer, before.spec.stream);
    const change = edit(endpointOf(before), before);
    if (change === undefined) return before;
    const manager = FIELD_MANAGER.facade;
    const own: Partial<SubscriptionSpec> = ownedPart(before, manager);
    const spec = { ...own, endpoint: { ...own.endpoint, ...change } as Endpoint };
    return writer.apply('Subscription', before.metadata, { manager, before, concern: [], exactly: true, spec });
  });
  return writer.waitFor('Subscription', applied);
}

const aboutOf = ({ metadata }: Cached<'Subscription'>) => ({
  kind: 'Subscription',
  namespace: metadata.namespace,
  name: metadata.name,
});

const getSecret = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/secret',
  access: 'recipient',
  scope: 'waas:keys',
  operation: 'getSigningSecret',
  tag: 'Receiving',
  summary: 'Retrieve the signing secret',
  description:
    'Returns the version that deliveries are signed with. After you set a version with `kubectl`, the call returns the previous version until the controller has put the new one in force. After that, the previous version stays valid for 24 hours. If you have skipped a version, the response is `503 not_in_force` until then.',
  showsSecret: true,
  answers: {
    200: { description: 'The current secret, and the previous secret if it is still in use.', schema: SigningSecrets },
  },
  problems: ['unknown_resource', 'no_endpoint', 'not_in_force'],
  async handle(facade, { integration, params }) {
    const subscription = await readSubscription(facade, integration, params.subscription);
    return { status: 200, body: secretsOf(facade, subscription), about: aboutOf(subscription) };
  },
});

const rotateSecret = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/rotate',
  access: 'recipient',
  scope: 'waas:keys',
  operation: 'rotateSigningSecret',
  tag: 'Receiving',
  summary: 'Rotate the signing secret',
  description:
    'Creates a new signing secret. For the next 24 hours, Sluice signs deliveries with both the old and the new secret. If you repeat the request during this time, it returns the same secrets. To rotate the secret again during this time, specify the next version as `secretVersion`. Sluice then stops using the oldest of the three secrets.',
  body: Rotation,
  bodyOptional: true,
  answers: { 200: { description: 'Deliveries are now signed with both secrets.', schema: SigningSecrets } },
  problems: ['unknown_resource', 'no_endpoint', 'integration_not_active', 'superseded'],
  async handle(facade, { integration, params, body }) {
    const wanted = body?.secretVersion;
    let version: number | undefined;
    const rotated = await editEndpoint(facade, integration, params.subscription, (endpoint, before) => {
      const present = versionOf(endpoint);
      if (wanted !== undefined && wanted !== present && wanted !== present + 1) {
        throw new Refusal('changed_meanwhile', `The current version is ${present}. Send ${present + 1}.`);
      }
      const repeats = wanted === present || (wanted === undefined && isRotating(facade, before));
      version = repeats ? present : present + 1;
      return repeats ? undefined : { secretVersion: version };
    });
    const secrets = secretsOf(facade, rotated);
    if (secrets.secretVersion !== version) throw new Refusal('superseded');
    return { status: 200, body: secrets, about: aboutOf(rotated) };
  },
});

const enableEndpoint = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/enable',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'enableEndpoint',
  idempotency: 'answer',
  tag: 'Receiving',
  summary: 'Enable a disabled endpoint',
  description: 'Enables the endpoint. Failures and 410 responses from before the request can no longer disable it.',
  answers: { 200: { description: 'The endpoint has been enabled.', schema: SubscriptionEntry } },
  problems: ['unknown_resource', 'no_endpoint', 'integration_not_active'],
  async handle(facade, { integration, params }) {
    const enabled = await editEndpoint(facade, integration, params.subscription, (_endpoint, { status }) => {
      // Uses the Redis clock, like disabledAt, and is always later than disabledAt.
      const disabledMs = Date.parse(status?.endpoint?.disabledAt ?? '') || 0;
      return { enabledAt: new Date(Math.max(facade.nowMs(), disabledMs + 1)).toISOString() };
    });
    return { status: 200, body: entryOf(facade, integration, enabled), about: aboutOf(enabled) };
  },
});

export const SIGNING_SECRET_ROUTES = [getSecret, rotateSecret, enableEndpoint];
