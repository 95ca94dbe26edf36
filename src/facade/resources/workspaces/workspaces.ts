import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Role } from '../../auth/ownership.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { ROLE_MEANINGS, RoleField } from '../../contract/roles.ts';
import { defineRoute } from '../../contract/route.ts';
import { workspacesOf } from '../../objects/objects-of-caller.ts';

const EnableProducer = z
  .strictObject({ producerTenantPublicId: publicIdField('Workspace') })
  .meta({ id: 'EnableProducer' });

const EnabledProducer = z
  .object({
    publicId: publicIdField('Workspace'),
    producer: z.literal(true).meta({ description: 'The workspace is able to publish streams and invite partners.' }),
  })
  .meta({ id: 'EnabledProducer' });

const WorkspaceEntry = z
  .object({
    publicId: publicIdField('Workspace'),
    name: z
      .string()
      .meta({ description: "The workspace's name, which is also used for its namespace.", example: 'shop' }),
    accountPublicId: publicIdField('Account').meta({ description: 'The account to charge for tokens.' }),
    role: RoleField.meta({
      description: `Your role for the workspace, as one of its owners or as a member of its account. ${ROLE_MEANINGS}`,
    }),
    producer: z.boolean().meta({
      description:
        'Indicates whether the workspace is a producer, which means that it was marked as a producer or has had a stream.',
    }),
  })
  .meta({ id: 'Workspace' });

function workspaceEntry(workspace: Cached<'Workspace'>, role: Role): z.output<typeof WorkspaceEntry> {
  const { metadata, spec, status } = workspace;
  return {
    publicId: tenantId(metadata.name),
    name: metadata.name,
    accountPublicId: publicId('Account', '', spec.account),
    role,
    producer: status?.producer ?? spec.producer ?? false,
  };
}

const listWorkspaces = defineRoute({
  method: 'GET',
  path: '/waas/workspaces',
  access: 'caller',
  scope: 'waas:read',
  operation: 'listWorkspaces',
  tag: 'Workspaces',
  summary: 'List all of your workspaces',
  query: PageQuery,
  answers: { 200: { description: 'A list of workspaces, sorted by name.', schema: pageOf(WorkspaceEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { identity, query }) {
    const { data, nextCursor } = paginate(
      ['workspaces'],
      workspacesOf(caches, identity),
      ([{ metadata }]) => metadata.name,
      query,
    );
    return { status: 200, body: { data: data.map(each => workspaceEntry(...each)), nextCursor } };
  },
});

const getWorkspace = defineRoute({
  method: 'GET',
  path: '/waas/workspaces/{tenant}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getWorkspace',
  tag: 'Workspaces',
  summary: 'Retrieve a workspace',
  answers: { 200: { description: 'The requested workspace.', schema: WorkspaceEntry } },
  async handle(_facade, { tenant }) {
    return { status: 200, body: workspaceEntry(tenant.workspace, tenant.role) };
  },
});

const enableProducer = defineRoute({
  method: 'POST',
  path: '/waas/enable-producer',
  access: 'producer',
  scope: 'waas:write',
  operation: 'enableProducer',
  tag: 'Workspaces',
  summary: 'Mark a workspace as a producer',
  description:
    "You only need this call before you create your first stream, which also marks the workspace as a producer. You can't undo the call using the REST API.",
  body: EnableProducer,
  answers: { 200: { description: 'The workspace is now a producer.', schema: EnabledProducer } },
  async handle({ caches, writer }, { tenant }) {
    const { name, publicId: id } = tenant;
    const applied = await writer.edit(async () => {
      const before = await caches.live('Workspace', { name });
      if (before === undefined || before.metadata.deletionTimestamp !== undefined) throw new Refusal('forbidden');
      return writer.apply(
        'Workspace',
        { name },
        {
          manager: FIELD_MANAGER.facadeProducer,
          before,
          concern: ['producer'],
          spec: { producer: true },
        },
      );
    });
    // The Ready condition and `producer` are both set in a single status update.
    await writer.waitFor('Workspace', applied);
    return {
      status: 200,
      body: { publicId: id, producer: true } satisfies z.output<typeof EnabledProducer>,
      about: { kind: 'Workspace', name },
    };
  },
});

export const WORKSPACE_ROUTES = [listWorkspaces, getWorkspace, enableProducer];
