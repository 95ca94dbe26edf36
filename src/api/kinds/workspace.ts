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
      .describe('Name of the key within the workspace, 1 to 63 characters.'),
    sha256: sha256Hex().describe(
      'SHA-256 of the key, as 64 lower-case hexadecimal digits. The key itself is not stored.',
    ),
    expiresAt: timestamp().describe('When the key expires (RFC 3339). Absent: never.').optional(),
  })
  .describe('An ingress key of the workspace. It opens only ingress.');
export type IngressKey = z.infer<typeof IngressKey>;

export const WorkspaceSpec = withTransitions(
  z.object({
    account: objectName().describe('Name of the Account that pays. Immutable.'),
    owners: atomicList(Owner, { max: 64 })
      .describe("Owners and admins of the workspace over REST, in addition to the account's owners. At most 64.")
      .optional(),
    producer: z
      .boolean()
      .describe(
        'True: marks the workspace as a producer before it has a stream. Has no effect on events. Absent: false.',
      )
      .optional(),
    ingressKeys: mapList(IngressKey, 'id', { max: 16 })
      .describe(
        'Ingress keys created over REST, at most 16. Several can be valid at once, for rotation. You can also create Secrets of type sluice.dev/ingress-key in the namespace, with 20 to 512 bytes in the field key; a Secret that is not usable gets an Event.',
      )
      .optional(),
  }),
  immutable('account'),
).describe('Desired state of the workspace: its owners, and the account that pays.');
export type WorkspaceSpec = z.infer<typeof WorkspaceSpec>;

export const WorkspaceStatus = z
  .object({
    ...statusFields,
    namespace: z.string().max(63).describe('The namespace that belongs to the workspace: metadata.name.').optional(),
    producer: z
      .boolean()
      .describe('Whether the workspace is a producer: by spec.producer, or because it ever had a stream. Stays true.')
      .optional(),
  })
  .describe('Observed state of the workspace.');
export type WorkspaceStatus = z.infer<typeof WorkspaceStatus>;

/** Namespaces of the system: no Workspace may have such a name. The kind has the same rule in CEL. */
const RESERVED_NAMES = ['default'];
const RESERVED_PREFIXES = ['kube-', 'sluice-'];

/** Returns whether the name is reserved because its namespace belongs to the system. */
export function isReservedWorkspaceName(name: string): boolean {
  return RESERVED_NAMES.includes(name) || RESERVED_PREFIXES.some(prefix => name.startsWith(prefix));
}

export const Workspace = defineKind({
  kind: 'Workspace',
  plural: 'workspaces',
  shortNames: ['wksp'],
  scope: 'Cluster',
  description:
    'One producer, one partner, or both: a namespace of the same name, its owners and the account that pays. The controller adopts an existing namespace only if it has the label sluice.dev/workspace=<name>. Deleting the workspace closes its routing and keeps the namespace. While it has the annotation sluice.dev/paused: "true", events flow by the routes already applied, and changes wait until you remove it (deletions of streams wait at most a minute). Changes that close a gate do not wait: a Block, a revoked or deleted Activation, a revoked or declined Integration and a deleted Subscription take effect at once, and what they closed stays closed until the pause ends. If Redis loses control state during the pause, it is rebuilt only after the pause; until then ingress answers 503.',
  spec: WorkspaceSpec,
  status: WorkspaceStatus,
  rules: [
    {
      rule: [
        ...RESERVED_NAMES.map(name => `self.metadata.name != '${name}'`),
        ...RESERVED_PREFIXES.map(prefix => `!self.metadata.name.startsWith('${prefix}')`),
      ].join(' && '),
      message: 'metadata.name: default, kube-* and sluice-* are namespaces of the system, choose another name',
    },
  ],
  columns: [
    { name: 'Account', type: 'string', jsonPath: '.spec.account', description: 'The account that pays.' },
    { name: 'Producer', type: 'boolean', jsonPath: '.status.producer', description: 'Whether it is a producer.' },
    {
      name: 'Paused',
      type: 'string',
      jsonPath: `.metadata.annotations.${PAUSED_ANNOTATION.replaceAll('.', String.raw`\.`)}`,
      description: `Value of the annotation ${PAUSED_ANNOTATION}: while it is true, changes wait.`,
    },
  ],
});
export type Workspace = z.infer<typeof Workspace.schema>;
