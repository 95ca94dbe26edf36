import { randomBytes } from 'node:crypto';
import { z } from 'zod';
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
      description:
        'The id of the key, which must be unique in the workspace. If this field is not set, Sluice generates an id.',
      example: 'key-1',
    }),
    expiresAt: z.iso.datetime({ offset: true }).optional().meta({
      description:
        'The time (RFC 3339) when the key expires, which must be in the future. If this field is not set, the key does not expire.',
      example: '2099-12-31T00:00:00Z',
    }),
  })
  .meta({ id: 'NewIngressKey' });

const IngressKeyEntry = z
  .object({
    id: PATH_PARAMETERS.key,
    expiresAt: z.string().nullable().meta({
      format: 'date-time',
      description: 'The time (RFC 3339) when the key expires. If the value is null, the key does not expire.',
    }),
  })
  .meta({ id: 'IngressKey' });

const CreatedIngressKey = IngressKeyEntry.extend({
  key: z
    .string()
    .meta({ description: 'The ingress key. It is only included in this response.', example: `slk_${'A'.repeat(43)}` }),
}).meta({ id: 'CreatedIngressKey' });

/**
 * Removes a key that never took effect. This is safe to do: the caller hasn't received the key and can repeat the call.
 */
async function withdraw(facade: Facade, workspace: string, id: string, cause: unknown): Promise<Refusal> {
  const withdrawn = await removeIngressKey(facade, workspace, id).then(
    () => true,
    () => false,
  );
  const what = withdrawn ? 'was removed. Try again' : `cannot be shown. Delete ${id} and try again`;
  return new Refusal('unavailable', { detail: `The key was not in force after 5 s and ${what}.`, cause });
}

const createKey = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/ingress-keys',
  access: 'producer',
  operation: 'createIngressKey',
  tag: 'Ingress keys',
  summary: 'Create an ingress key',
  description:
    'Creates an ingress key. The key is only shown in this response because Sluice stores only its SHA-256 hash. You can use the key immediately, and existing keys remain valid. A workspace can have at most 16 keys. If the id already exists, the call is rejected because an existing key cannot be shown again. In this case, delete the key or choose another id.',
  body: NewIngressKey,
  bodyOptional: true,
  answers: {
    201: {
      description: 'The ingress key, which you can use immediately.',
      schema: CreatedIngressKey,
      headers: { Location: 'The path of the key.' },
    },
  },
  problems: ['ingress_key_exists'],
  async handle(facade, { tenant, body }) {
    const { id = `key-${crockford(randomBytes(8), 10)}`, expiresAt: until } = body ?? {};
    const expiresAt = until === undefined ? undefined : new Date(until).toISOString();
    if (expiresAt !== undefined && Date.parse(expiresAt) <= facade.wallMs()) {
      throw new Refusal('invalid_request', { errors: [{ pointer: '/expiresAt', detail: 'is in the past' }] });
    }
    const key = formatIngressKey(randomBytes(INGRESS_KEY_BYTES));
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
  operation: 'listIngressKeys',
  tag: 'Ingress keys',
  summary: 'List the ingress keys of a workspace',
  description:
    'Returns the ids and expiry times of keys. The response does not contain the keys or their hashes, and it does not include keys that are stored in Secrets in the namespace.',
  query: PageQuery,
  answers: { 200: { description: 'A page of keys, sorted by id.', schema: pageOf(IngressKeyEntry) } },
  problems: ['malformed_cursor'],
  async handle(_facade, { tenant, query }) {
    const keys = (tenant.workspace.spec.ingressKeys ?? []).map(({ id, expiresAt = null }) => ({ id, expiresAt }));
    return { status: 200, body: paginate(keys, ({ id }) => id, query) };
  },
});

const deleteKey = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/ingress-keys/{key}',
  access: 'producer',
  operation: 'deleteIngressKey',
  tag: 'Ingress keys',
  summary: 'Delete an ingress key',
  description:
    'Deletes an ingress key. You can safely repeat this call. Ingress caches keys for at most 5 s and then rejects the deleted key. If the key has another field manager, such as Git, you must remove it there.',
  answers: { 204: { description: 'The key does not exist.' } },
  async handle(facade, { tenant, params }) {
    const workspace = await removeIngressKey(facade, tenant.name, params.key);
    await facade.writer.waitFor('Workspace', workspace);
    return { status: 204, about: { kind: 'Workspace', name: tenant.name } };
  },
});

export const INGRESS_KEY_ROUTES = [createKey, listKeys, deleteKey];
