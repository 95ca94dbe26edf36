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
    id: PATH_PARAMETERS.key
      .optional()
      .meta({ description: 'Id of the key, unique in the workspace. Absent: Sluice generates one.', example: 'key-1' }),
    expiresAt: z.iso.datetime({ offset: true }).optional().meta({
      description: 'When the key expires (RFC 3339), in the future. Absent: never.',
      example: '2099-12-31T00:00:00Z',
    }),
  })
  .meta({ id: 'NewIngressKey' });

const IngressKeyEntry = z
  .object({
    id: PATH_PARAMETERS.key,
    expiresAt: z
      .string()
      .nullable()
      .meta({ format: 'date-time', description: 'When the key expires (RFC 3339); null: never.' }),
  })
  .meta({ id: 'IngressKey' });

const CreatedIngressKey = IngressKeyEntry.extend({
  key: z.string().meta({ description: 'The key. Only this answer shows it.', example: `slk_${'A'.repeat(43)}` }),
}).meta({ id: 'CreatedIngressKey' });

/** Removes a key that did not come into force. The caller has not seen it and can repeat the call. */
async function withdraw(facade: Facade, workspace: string, id: string, cause: unknown): Promise<Refusal> {
  const withdrawn = await removeIngressKey(facade, workspace, id).then(
    () => true,
    () => false,
  );
  const what = withdrawn ? 'was removed. Try again' : `cannot be shown. Delete ${id} and try again`;
  return new Refusal('unavailable', { detail: `The key did not come into force within 5 s and ${what}.`, cause });
}

const createKey = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/ingress-keys',
  access: 'producer',
  operation: 'createIngressKey',
  tag: 'Ingress keys',
  summary: 'Create an ingress key',
  description:
    'The answer shows the key once; Sluice stores only its SHA-256. The key works from the answer on, beside all others; a workspace has at most 16. An existing id is refused, because its key cannot be shown again: delete it, or choose another id.',
  body: NewIngressKey,
  bodyOptional: true,
  answers: {
    201: {
      description: 'The key. It works now.',
      schema: CreatedIngressKey,
      headers: { Location: 'Path of the key.' },
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
  description: 'Lists ids and expiry, without keys or hashes. Keys that are Secrets in the namespace are not listed.',
  query: PageQuery,
  answers: { 200: { description: 'A page of keys, by id.', schema: pageOf(IngressKeyEntry) } },
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
    'Idempotent. Ingress caches a key for at most 5 s; after that the key is rejected. A key with another field manager (such as Git) must be removed there.',
  answers: { 204: { description: 'The key does not exist (any more).' } },
  async handle(facade, { tenant, params }) {
    const workspace = await removeIngressKey(facade, tenant.name, params.key);
    await facade.writer.waitFor('Workspace', workspace);
    return { status: 204, about: { kind: 'Workspace', name: tenant.name } };
  },
});

export const INGRESS_KEY_ROUTES = [createKey, listKeys, deleteKey];
