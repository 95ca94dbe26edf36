import { z } from 'zod';
import { statusFields } from '../conditions.ts';
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
      .describe('The name of the key, which is unique in the workspace, with 1 to 63 characters.'),
    sha256: sha256Hex().describe(
      'The SHA-256 hash of the key, with 64 lowercase hexadecimal digits. The key is not stored.',
    ),
    expiresAt: timestamp()
      .describe('The time (RFC 3339) when the key expires. If this field is not set, the key does not expire.')
      .optional(),
  })
  .describe('An ingress key of the workspace. You can only use it with ingress.');
export type IngressKey = z.infer<typeof IngressKey>;

export const WorkspaceSpec = withTransitions(
  z.object({
    account: objectName().describe('The name of the Account that pays for the tokens. This field is immutable.'),
    owners: atomicList(Owner, { max: 64 })
      .describe(
        'The owners and admins of the workspace in the REST API, in addition to the owners of the account. The list can have at most 64 entries.',
      )
      .optional(),
    producer: z
      .boolean()
      .describe(
        'If true, the workspace is marked as a producer before it has a stream. This does not affect events. Defaults to false.',
      )
      .optional(),
    ingressKeys: mapList(IngressKey, 'id', { max: 16 })
      .describe(
        'The ingress keys that were created with the REST API, with at most 16 entries. To rotate a key, you can use several valid keys at the same time. You can also create Secrets of type sluice.dev/ingress-key in the namespace. The field key of the Secret must contain 20 to 512 bytes. If a Secret is not valid, the controller records an Event.',
      )
      .optional(),
  }),
  immutable('account'),
).describe('The owners of the workspace and the account that pays for its tokens.');
export type WorkspaceSpec = z.infer<typeof WorkspaceSpec>;

export const WorkspaceStatus = z
  .object({
    ...statusFields,
    namespace: z
      .string()
      .max(63)
      .describe('The namespace of the workspace, which is the same as metadata.name.')
      .optional(),
    producer: z
      .boolean()
      .describe(
        'Whether the workspace is a producer. This is true if spec.producer is true or if the workspace has ever had a stream. The value does not change back to false.',
      )
      .optional(),
  })
  .describe('The observed state of the workspace.');
export type WorkspaceStatus = z.infer<typeof WorkspaceStatus>;

/** System namespaces, which can't be used to name a Workspace. The kind has the same rule in CEL. */
const RESERVED_NAMES = ['default'];
const RESERVED_PREFIXES = ['kube-', 'sluice-'];

/** Returns true if the name is reserved for a system namespace. */
export function isReservedWorkspaceName(name: string): boolean {
  return RESERVED_NAMES.includes(name) || RESERVED_PREFIXES.some(prefix => name.startsWith(prefix));
}

export const Workspace = defineKind({
  kind: 'Workspace',
  plural: 'workspaces',
  shortNames: ['wksp'],
  scope: 'Cluster',
  description:
    'A Workspace represents a producer, a partner, or both. It consists of a namespace with the same name, its owners, and the account that pays for its tokens. If the namespace already exists, the controller only adopts it if it has the label sluice.dev/workspace=<name>. If you delete the workspace, its routing is closed and the namespace is kept. To pause a workspace, add the annotation sluice.dev/paused: "true". In a paused workspace, events continue to use the routes that are already applied, and changes wait until you remove the annotation. Deletions of streams wait for at most one minute. Changes that close a gate take effect immediately, and the gate stays closed until the pause ends. This applies to Blocks, to revoked or deleted Activations, to revoked or declined Integrations, and to deleted Subscriptions. If Redis loses control state during the pause, the controller restores it after the pause. Until then, ingress responds with 503.',
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
      description: 'The account that pays for the tokens.',
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
      description: `The value of the annotation ${PAUSED_ANNOTATION}. If the value is true, changes are not applied.`,
    },
  ],
});
export type Workspace = z.infer<typeof Workspace.schema>;
