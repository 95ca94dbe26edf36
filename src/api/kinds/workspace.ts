import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { INSTANCE_COLUMN, INSTANCE_FIELD, INSTANCE_IS_IMMUTABLE, instanceField } from '../instance.ts';
import { defineKind } from '../kind.ts';
import { atomicList, mapList } from '../lists.ts';
import { Owner } from '../owner.ts';
import { immutable, withPattern, withTransitions } from '../rules.ts';
import { objectName, sha256Hex, timestamp } from '../strings.ts';
import { PAUSED_ANNOTATION } from '../well-known.ts';

export const IngressKey = z
  .object({
    id: withPattern(
      z.string().min(1).max(63),
      /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      'must be letters and digits, with ".", "_" and "-" between them, such as key-1',
    ).describe('The name of the key, between 1 and 63 characters long. Must be unique within the workspace.'),
    sha256: sha256Hex().describe(
      'The SHA-256 hash of the key as 64 lowercase hexadecimal digits. The key itself is never stored.',
    ),
    expiresAt: timestamp()
      .describe('The time (RFC 3339) at which the key expires. If not set, the key does not expire.')
      .optional(),
  })
  .describe('Ingress key belonging to the workspace. The key can only be used for ingress.');
export type IngressKey = z.infer<typeof IngressKey>;

export const WorkspaceSpec = withTransitions(
  z.object({
    account: objectName().describe('The name of the The account to charge for tokens. Immutable.'),
    owners: atomicList(Owner, { max: 64 })
      .describe(
        "The people, groups, and clients with access to the workspace in the REST API, in addition to the account's owners. There can be at most 64 entries.",
      )
      .optional(),
    producer: z
      .boolean()
      .describe(
        'Set to true to mark the workspace as a producer before it has any streams. Events are not affected. Defaults to false.',
      )
      .optional(),
    ingressKeys: mapList(IngressKey, 'id', { max: 16 })
      .describe(
        'The ingress keys created through the REST API, at most 16. To rotate a key, add a new one before you remove the old one. You can also create keys as Secrets of type sluice.dev/ingress-key in the namespace, with 20 to 512 bytes in the field key. If such a Secret is invalid, it has an Event with the reason.',
      )
      .optional(),
    instance: instanceField(),
  }),
  immutable('account'),
  INSTANCE_IS_IMMUTABLE,
).describe('Specifies the owners of the workspace and the account to charge for tokens.');
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
        'Indicates whether the workspace is a producer, which means that spec.producer is true or that the workspace has had a stream. The value never changes back to false.',
      )
      .optional(),
  })
  .describe('The most recently observed status of the workspace.');
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
  description: [
    'Workspace is a producer, a partner, or both. It has owners, an account that pays for its tokens, and a namespace with the same name. The controller creates the namespace, or uses an existing one with the sluice.dev/workspace=<name> label (and sluice.dev/instance=<instance> if the workspace has an instance).',
    'Deleting a workspace closes its routes as a producer and keeps its namespace. Events that wait for a route are skipped unless you recreate the workspace within one minute. Subscriptions in this namespace still receive events until you delete them.',
    'To pause a workspace, for example before a large change, set the annotation sluice.dev/paused: "true". Until you remove the annotation, events use the existing routes and changes wait. The deletion of a stream without undelivered events waits for at most one minute. Some changes close a gate. They take effect immediately, and the gate stays closed until the end of the pause: Blocks, revoked or deleted Activations, revoked or declined Integrations, deleted Subscriptions, and removed ingress keys. A Subscription waits for the end of a pause of the producer. A pause of its own workspace has no effect on it. If Redis loses its control state during a pause, ingress responds with 503 until the end of the pause.',
  ].join('\n\n'),
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
      description: 'The account to charge for tokens.',
    },
    {
      name: 'Producer',
      type: 'boolean',
      jsonPath: '.status.producer',
      description: 'Indicates whether the workspace is a producer.',
    },
    {
      name: 'Paused',
      type: 'string',
      jsonPath: `.metadata.annotations.${PAUSED_ANNOTATION.replaceAll('.', String.raw`\.`)}`,
      description: `The value of the ${PAUSED_ANNOTATION} annotation. While it is true, changes are not applied.`,
    },
    INSTANCE_COLUMN,
  ],
  selectableFields: [INSTANCE_FIELD],
});
export type Workspace = z.infer<typeof Workspace.schema>;
