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
      .meta({ description: 'Name of the key within the workspace. Absent: a new one is made up.', example: 'key-1' }),
    expiresAt: z.iso.datetime({ offset: true }).optional().meta({
      description: 'Until when it is good (RFC 3339), in the future. Absent: until it is deleted.',
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
      .meta({ format: 'date-time', description: 'Until when it is good (RFC 3339); null: until it is deleted.' }),
  })
  .meta({ id: 'IngressKey' });

const MadeIngressKey = IngressKeyEntry.extend({
  key: z.string().meta({ description: 'Shown here and never again.', example: `slk_${'A'.repeat(43)}` }),
}).meta({ id: 'MadeIngressKey' });

/** A key that is not in force was shown to nobody: it is taken back, so that the call can be repeated. */
async function withdraw(facade: Facade, workspace: string, id: string, cause: unknown): Promise<Refusal> {
  const withdrawn = await removeIngressKey(facade, workspace, id).then(
    () => true,
    () => false,
  );
  const what = withdrawn ? 'was withdrawn. Ask again' : `is shown to nobody. Delete ${id} and ask again`;
  return new Refusal('unavailable', { detail: `The key did not come into force within 5 s and ${what}.`, cause });
}

const createKey = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/ingress-keys',
  access: 'producer',
  operation: 'createIngressKey',
  tag: 'Ingress keys',
  summary: 'Make an ingress key',
  description:
    'Shown once: only its SHA-256 is kept. It works when this is answered, beside all others; at most 16 in a workspace. As a key is never shown again, an id that is taken is refused: delete it, or ask for another.',
  body: NewIngressKey,
  bodyOptional: true,
  answers: {
    201: { description: 'The key, which works.', schema: MadeIngressKey, headers: { Location: 'Path of the key.' } },
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
      await facade.objects.waitFor('Workspace', applied);
    } catch (cause) {
      throw await withdraw(facade, tenant.name, id, cause);
    }
    return {
      status: 201,
      body: { id, expiresAt: expiresAt ?? null, key } satisfies z.output<typeof MadeIngressKey>,
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
  description: 'Without the keys and their hashes. Those that are Secrets in the namespace are not among them.',
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
    'Idempotent. The ingress remembers a key for at most 5 s: after that it opens nothing. A key that somebody else manages (Git) has to be removed there.',
  answers: { 204: { description: 'There is no such key, now or since before.' } },
  async handle(facade, { tenant, params }) {
    const workspace = await removeIngressKey(facade, tenant.name, params.key);
    await facade.objects.waitFor('Workspace', workspace);
    return { status: 204, about: { kind: 'Workspace', name: tenant.name } };
  },
});

export const INGRESS_KEY_ROUTES = [createKey, listKeys, deleteKey];
