import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { MUST_BE_TIME } from '../../../api/strings.ts';
import { crockford } from '../../../core/ids/ids.ts';
import { formatIngressKey, hashIngressKey, INGRESS_KEY_BYTES } from '../../../core/ids/ingress-key.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { addIngressKey, removeIngressKey } from './ingress-key-list.ts';

const NewIngressKey = z
  .strictObject({
    id: PATH_PARAMETERS.key.optional().meta({
      description: 'A unique id for the key within the workspace. If not specified, an id is generated.',
      example: 'key-1',
    }),
    expiresAt: z.iso
      .datetime({ offset: true, error: MUST_BE_TIME })
      // The API server does not accept years with more digits.
      .refine(time => new Date(time).getUTCFullYear() <= 9_999, 'must be before the year 10000 in UTC')
      .optional()
      .meta({
        description:
          'The time (RFC 3339) at which the key expires. Must be in the future. If not set, the key does not expire.',
        example: '2099-12-31T00:00:00Z',
      }),
  })
  .meta({ id: 'NewIngressKey' });

const IngressKeyEntry = z
  .object({
    id: PATH_PARAMETERS.key,
    expiresAt: z.string().nullable().meta({
      format: 'date-time',
      description: "The time (RFC 3339) at which the key expires, or null if the key doesn't expire.",
    }),
  })
  .meta({ id: 'IngressKey' });

const CreatedIngressKey = IngressKeyEntry.extend({
  key: z.string().meta({
    description: 'The ingress key itself. Only this response contains it.',
    example: `slk_${'A'.repeat(43)}`,
  }),
}).meta({ id: 'CreatedIngressKey' });

/**
 * Returns a function that generates the random bytes of a new key. If there is a seed, they are derived from the seed
 * using the root key specified in it so that a repeated call returns the same key. The seed alone doesn't reveal
 * anything.
 */
function randomnessOf({ keys }: Facade, tenant: string, seed: string | undefined) {
  // If the key was removed in the meantime, the call is performed like a new one.
  const rootKey = (keys.key(seed?.split('.')[0]) ?? keys.first()).secret;
  return (part: 'id' | 'key'): Uint8Array =>
    seed === undefined
      ? randomBytes(INGRESS_KEY_BYTES)
      : createHmac('sha256', rootKey).update(`sluice ingress key v1/${part}/${tenant}/${seed}`).digest();
}

/**
 * Removes a key that has never taken effect, and returns the reason. The removal is safe: the caller hasn't received
 * the key and can repeat the call.
 */
async function withdraw(facade: Facade, workspace: string, id: string, cause: unknown): Promise<Refusal> {
  const withdrawn = await removeIngressKey(facade, workspace, id).then(
    () => true,
    () => false,
  );
  // Nothing was stored, unlike for other calls in a paused workspace.
  if (withdrawn && cause instanceof Refusal && cause.code === 'workspace_paused') return new Refusal(cause.code);
  // Repeating the call does not help, because the Workspace itself has to be corrected.
  if (withdrawn && cause instanceof Refusal && cause.code === 'not_reconcilable') return cause;
  const what = withdrawn ? 'was removed. Try again' : `cannot be shown. Delete ${id} and try again`;
  return new Refusal('unavailable', { detail: `The key was not in force after 5 s and ${what}.`, cause });
}

const createKey = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/ingress-keys',
  access: 'producer',
  scope: 'waas:keys',
  operation: 'createIngressKey',
  tag: 'Ingress keys',
  summary: 'Create an ingress key',
  description:
    "Creates an ingress key, which you can use immediately. Save the key now. Sluice only stores its SHA-256 hash, so it can't show the key again. Existing keys stay valid. A workspace can have up to 16 keys. If a key with this id exists, the request is rejected. Delete that key first, or choose another id. With an Idempotency-Key, repeating the request returns the same key for 24 hours, even if it has been deleted in the meantime.",
  body: NewIngressKey,
  bodyOptional: true,
  idempotency: 'answer',
  answers: {
    201: {
      description: 'The new ingress key, which can be used immediately.',
      schema: CreatedIngressKey,
      headers: { Location: 'The path of the key.' },
    },
  },
  problems: ['ingress_key_exists'],
  async handle(facade, { tenant, body, seed }) {
    const bytesFor = randomnessOf(facade, tenant.publicId, seed);
    const { id = `key-${crockford(bytesFor('id'), 10)}`, expiresAt: until } = body ?? {};
    const expiresAt = until === undefined ? undefined : new Date(until).toISOString();
    if (expiresAt !== undefined && Date.parse(expiresAt) <= facade.wallMs()) {
      throw new Refusal('invalid_request', { errors: [{ pointer: '/expiresAt', detail: 'is in the past' }] });
    }
    const key = formatIngressKey(bytesFor('key'));
    const applied = await addIngressKey(facade, tenant.name, {
      id,
      sha256: hashIngressKey(key),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
    try {
      await facade.writer.waitFor('Workspace', applied);
    } catch (cause) {
      throw await withdraw(facade, tenant.name, id, cause);
    }
    return {
      status: 201,
      body: { id, expiresAt: expiresAt ?? null, key } satisfies z.output<typeof CreatedIngressKey>,
      headers: { location: `/waas/producer/${tenant.publicId}/ingress-keys/${id}` },
      about: { kind: 'Workspace', name: tenant.name },
    };
  },
});

const listKeys = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/ingress-keys',
  access: 'producer',
  scope: 'waas:keys',
  operation: 'listIngressKeys',
  tag: 'Ingress keys',
  summary: 'List all ingress keys for a workspace',
  description:
    'Returns a list of key ids and their expiry times. The keys and their hashes are not included. Keys stored in Secrets within the namespace are not listed.',
  query: PageQuery,
  answers: { 200: { description: 'A list of keys, sorted by id.', schema: pageOf(IngressKeyEntry) } },
  problems: ['malformed_cursor'],
  async handle(_facade, { tenant, query }) {
    const keys = (tenant.workspace.spec.ingressKeys ?? []).map(({ id, expiresAt = null }) => ({ id, expiresAt }));
    return { status: 200, body: paginate(['ingress keys', tenant.name], keys, ({ id }) => id, query) };
  },
});

const deleteKey = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/ingress-keys/{key}',
  access: 'producer',
  scope: 'waas:keys',
  operation: 'deleteIngressKey',
  tag: 'Ingress keys',
  summary: 'Delete an ingress key',
  description:
    'Deletes an ingress key, even if the workspace is paused or its namespace is missing its label. Ingress caches keys, so it may accept the deleted key for another 5 s. You can safely repeat this request. If another field manager owns the key, such as Git, remove the key there.',
  closes: true,
  answers: { 204: { description: 'The key has been deleted or did not exist.' } },
  async handle(facade, { tenant, params }) {
    const workspace = await removeIngressKey(facade, tenant.name, params.key);
    await facade.writer.waitFor('Workspace', workspace, 'Ready', 'closed');
    return { status: 204, about: { kind: 'Workspace', name: tenant.name } };
  },
});

export const INGRESS_KEY_ROUTES = [createKey, listKeys, deleteKey];
