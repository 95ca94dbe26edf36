import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { INSTANCE_COLUMN, INSTANCE_FIELD, INSTANCE_IS_IMMUTABLE, instanceField } from '../instance.ts';
import { defineKind } from '../kind.ts';
import { atomicList, mapList } from '../lists.ts';
import { Owner } from '../owner.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName, sha256Hex, timestamp } from '../strings.ts';
import { PAUSED_ANNOTATION } from '../well-known.ts';

export const IngressKey = z
  .object({
    id: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/)
      .describe('The name of the key, between 1 and 63 characters long. Must be unique within the workspace.'),
    sha256: sha256Hex().describe(
      'The SHA-256 hash of the key as 64 lowercase hexadecimal digits. The key itself is never stored.',
    ),
    expiresAt: timestamp()
      .describe('The time (RFC 3339) at which the key expires. If this is not set, the key does not expire.')
      .optional(),
  })
  .describe('Ingress key belonging to the workspace. The key can only be used for ingress.');
export type IngressKey = z.infer<typeof IngressKey>;

export const WorkspaceSpec = withTransitions(
  z.object({
    account: objectName().describe('The name of the Account to charge for tokens. Immutable.'),
    owners: atomicList(Owner, { max: 64 })
      .describe(
        'The owners and admins of the workspace in the REST API, in addition to those of the account. There can be at most 64 entries.',
      )
      .optional(),
    producer: z
      .boolean()
      .describe(
        'Set to true to mark the workspace as a producer before it has any streams. This has no effect on events. Defaults to false.',
      )
      .optional(),
    ingressKeys: mapList(IngressKey, 'id', { max: 16 })
      .describe(
        'The ingress keys created using the REST API, up to a maximum of 16. Multiple keys can be valid at the same time, which allows you to rotate keys. Alternatively, keys can be provided as Secrets of type sluice.dev/ingress-key within the namespace, whose data must include a key field of 20 to 512 bytes. If one of these Secrets is not valid, an Event is recorded for this Secret.',
      )
      .optional(),
    instance: instanceField(),
  }),
  immutable('account'),
  INSTANCE_IS_IMMUTABLE,
).describe('Specifies workspace owners, and the account to charge for tokens.');
export type WorkspaceSpec = z.infer<typeof WorkspaceSpec>;

export const WorkspaceStatus = z
  .object({
    ...statusFields,
    namespace: z
      .string()
      .max(63)
      .describe('The namespace of the workspace, which always matches metadata.name.')
      .optional(),
    producer: z
      .boolean()
      .describe(
        'Whether the workspace is a producer, either because of spec.producer or because it has had a stream at some point. After this has been set to true, it never changes back to false.',
      )
      .optional(),
  })
  .describe('Most recently observed status of the workspace.');
export type WorkspaceStatus = z.infer<typeof WorkspaceStatus>;

/** System namespaces, which can't be used to name a Workspace. The kind has the same rule in CEL. */
const RESERVED_NAMES = ['default'];
const RESERVED_PREFIXES = ['kube-', 'sluice-'];

/** Returns true if this name is reserved for a system namespace. */
export function isReservedWorkspaceName(name: string): boolean {
  return RESERVED_NAMES.includes(name) || RESERVED_PREFIXES.some(prefix => name.startsWith(prefix));
}

export const Workspace = defineKind({
  kind: 'Workspace',
  plural: 'workspaces',
  shortNames: ['wksp'],
  scope: 'Cluster',
  description:
    'Workspace represents a producer, a partner, or both. It is made up of a namespace with the same name, a list of owners, and the account to charge for tokens. An existing namespace is only used if it has the label sluice.dev/workspace=<name>. For a workspace with an instance, it also requires the label sluice.dev/instance=<instance>. When a workspace is deleted, its routes are closed, but the namespace is kept. Workspaces can be paused using the annotation sluice.dev/paused: "true". While a workspace is paused, events continue to use the existing routes, and changes are held back until the annotation is removed. Stream deletions only wait for up to one minute. Changes that close a gate take effect immediately, and the gate stays closed until the end of the pause. Examples include Blocks, revoked or deleted Activations, revoked or declined Integrations, and deleted Subscriptions. If control state in Redis is lost during a pause, it is only restored after the pause. In the meantime, ingress responds with 503.',
  spec: WorkspaceSpec,
  status: WorkspaceStatus,
  rules: [
    {
      rule: [
        ...RESERVED_NAMES.map(name => `self.metadata.name != '${name}'`),
        ...RESERVED_PREFIXES.map(prefix => `!self.metadata.name.startsWith('${prefix}')`),
      ].join(' && '),
      message:
        'metadata.name cannot be default, kube-* or sluice-* because these namespaces are reserved for the system',
    },
  ],
  columns: [
    {
      name: 'Account',
      type: 'string',
      jsonPath: '.spec.account',
      description: 'Account to charge for tokens.',
    },
    {
      name: 'Producer',
      type: 'boolean',
      jsonPath: '.status.producer',
      description: 'Whether the workspace is a producer.',
    },
    {
      name: 'Paused',
      type: 'string',
      jsonPath: `.metadata.annotations.${PAUSED_ANNOTATION.replaceAll('.', String.raw`\.`)}`,
      description: `The value of the annotation ${PAUSED_ANNOTATION}. While this is set to true, changes are not applied.`,
    },
    INSTANCE_COLUMN,
  ],
  selectableFields: [INSTANCE_FIELD],
});
export type Workspace = z.infer<typeof Workspace.schema>;
