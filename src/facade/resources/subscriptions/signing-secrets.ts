import { z } from 'zod';
import { ENDPOINT_DEFAULTS, type Endpoint } from '../../../api/endpoint.ts';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { ROTATION_OVERLAP_MS, signingSecret, signingVersions } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { ownedPart } from '../../../kube/managed-fields.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
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
    secretVersion: version('The version of the secret. Each rotation increases the version by one.'),
    secret: secret('The secret that is used to sign deliveries (Standard Webhooks). It consists of whsec_ and base64.'),
    previous: z
      .object({
        secret: secret('The previous secret, which is also used to sign deliveries until this time.'),
        until: z.string().meta({
          format: 'date-time',
          description: 'The time (RFC 3339) until the secret is used, which is 24 hours after the rotation.',
        }),
      })
      .nullable()
      .meta({ description: 'The previous secret for 24 hours after a rotation. After that, the value is null.' }),
  })
  .meta({ id: 'SigningSecrets' });

const Rotation = z
  .strictObject({
    secretVersion: version(
      'The version to rotate to, which must be the current version plus 1. You can also use this field within 24 hours of the last rotation.',
    ).optional(),
  })
  .meta({ id: 'Rotation' });

function endpointOf({ spec }: Cached<'Subscription'>): Endpoint {
  if (spec.endpoint === undefined) throw new Refusal('no_endpoint');
  return spec.endpoint;
}

const versionOf = ({ secretVersion }: Endpoint): number => secretVersion ?? ENDPOINT_DEFAULTS.secretVersion;

/**
 * Returns the secrets currently used for signatures. Versions that were never used are treated as if they were rotated
 * now.
 */
function secretsOf({ rootKey, wallMs }: Facade, subscription: Cached<'Subscription'>): z.output<typeof SigningSecrets> {
  const { metadata, status } = subscription;
  const id = publicId('Subscription', metadata.namespace ?? '', metadata.name);
  const secretVersion = versionOf(endpointOf(subscription));
  const { version: signed, rotatedAt } = status?.signing ?? {};
  const rotated = signed !== undefined && secretVersion > signed;
  const rotatedMs = rotated ? wallMs() : rotatedAt === undefined ? undefined : Date.parse(rotatedAt);
  const [, previous] = signingVersions(secretVersion, rotatedMs, wallMs());
  return {
    secretVersion,
    secret: signingSecret(rootKey, id, secretVersion),
    previous:
      previous === undefined || rotatedMs === undefined
        ? null
        : {
            secret: signingSecret(rootKey, id, previous),
            until: new Date(rotatedMs + ROTATION_OVERLAP_MS).toISOString(),
          },
  };
}

/**
 * Changes the given endpoint fields, even if other managers own the rest. Fields this manager applied earlier are
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
  operation: 'getSigningSecret',
  tag: 'Receiving',
  summary: 'Read the signing secret',
  answers: {
    200: { description: 'The current secret, and the previous secret if it is still used.', schema: SigningSecrets },
  },
  problems: ['unknown_resource', 'no_endpoint'],
  async handle(facade, { integration, params }) {
    const subscription = await readSubscription(facade, integration, params.subscription);
    return { status: 200, body: secretsOf(facade, subscription) };
  },
});

const rotateSecret = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/rotate',
  access: 'recipient',
  operation: 'rotateSigningSecret',
  tag: 'Receiving',
  summary: 'Rotate the signing secret',
  description:
    'Creates a new signing secret. Both secrets are used to sign deliveries for 24 hours after the response. If you repeat the call within these 24 hours, it returns the same secrets. To rotate the secret again earlier, send the next version as `secretVersion`. In this case, the secret from before the last rotation is no longer used.',
  body: Rotation,
  bodyOptional: true,
  answers: { 200: { description: 'Both secrets are used to sign deliveries.', schema: SigningSecrets } },
  problems: ['unknown_resource', 'no_endpoint', 'integration_not_active'],
  async handle(facade, { integration, params, body }) {
    const wanted = body?.secretVersion;
    const rotated = await editEndpoint(facade, integration, params.subscription, (endpoint, before) => {
      const present = versionOf(endpoint);
      if (wanted === present || (wanted === undefined && secretsOf(facade, before).previous !== null)) return undefined;
      if (wanted !== undefined && wanted !== present + 1) {
        throw new Refusal('changed_meanwhile', `The current version is ${present}. Send ${present + 1}.`);
      }
      return { secretVersion: present + 1 };
    });
    return { status: 200, body: secretsOf(facade, rotated), about: aboutOf(rotated) };
  },
});

const enableEndpoint = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/enable',
  access: 'recipient',
  operation: 'enableEndpoint',
  tag: 'Receiving',
  summary: 'Enable a disabled endpoint',
  description:
    'Enables the endpoint from the time of the call. Previous failures and 410 responses no longer disable it.',
  answers: { 200: { description: 'The endpoint is enabled.', schema: SubscriptionEntry } },
  problems: ['unknown_resource', 'no_endpoint', 'integration_not_active'],
  async handle(facade, { integration, params }) {
    const enabled = await editEndpoint(facade, integration, params.subscription, (_endpoint, { status }) => {
      // Uses the Redis clock, as does disabledAt, and is always later than disabledAt.
      const disabledMs = Date.parse(status?.endpoint?.disabledAt ?? '') || 0;
      return { enabledAt: new Date(Math.max(facade.nowMs(), disabledMs + 1)).toISOString() };
    });
    return { status: 200, body: entryOf(facade, integration, enabled), about: aboutOf(enabled) };
  },
});

export const SIGNING_SECRET_ROUTES = [getSecret, rotateSecret, enableEndpoint];
