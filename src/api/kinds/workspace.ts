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
      'SHA-256 of the key, as 64 lower-case hexadecimal digits. The key itself is kept nowhere.',
    ),
    expiresAt: timestamp().describe('Until when the key is good (RFC 3339). Absent: until it is removed.').optional(),
  })
  .describe('A key that opens the ingress of the workspace, and nothing else.');
export type IngressKey = z.infer<typeof IngressKey>;

export const WorkspaceSpec = withTransitions(
  z.object({
    account: objectName().describe('Name of the Account that pays. Immutable.'),
    owners: atomicList(Owner, { max: 64 })
      .describe("Who may act for the workspace over REST, beside the account's owners. At most 64.")
      .optional(),
    producer: z
      .boolean()
      .describe('True: marked as a producer, before it has a stream. Gates nothing. Absent: false.')
      .optional(),
    ingressKeys: mapList(IngressKey, 'id', { max: 16 })
      .describe(
        'Keys made over REST, at most 16, several good at once for rotation. Others are Secrets of type sluice.dev/ingress-key in the namespace, with 20 to 512 bytes in the field key; one that opens nothing gets an Event.',
      )
      .optional(),
  }),
  immutable('account'),
).describe('Who owns the workspace and pays for it.');
export type WorkspaceSpec = z.infer<typeof WorkspaceSpec>;

export const WorkspaceStatus = z
  .object({
    ...statusFields,
    namespace: z.string().max(63).describe('The namespace that belongs to the workspace: metadata.name.').optional(),
    producer: z
      .boolean()
      .describe('Whether it is a producer: spec.producer, or it had a stream once. Stays true.')
      .optional(),
  })
  .describe('What the controller has made of it.');
export type WorkspaceStatus = z.infer<typeof WorkspaceStatus>;

/** Namespaces of the system: no Workspace may have such a name. The rule of the kind says the same in CEL. */
const RESERVED_NAMES = ['default'];
const RESERVED_PREFIXES = ['kube-', 'sluice-'];

/** Returns whether no Workspace may have the name, because its namespace belongs to the system. */
export function isReservedWorkspaceName(name: string): boolean {
  return RESERVED_NAMES.includes(name) || RESERVED_PREFIXES.some(prefix => name.startsWith(prefix));
}

export const Workspace = defineKind({
  kind: 'Workspace',
  plural: 'workspaces',
  shortNames: ['wksp'],
  scope: 'Cluster',
  description:
    'A tenant: a namespace of the same name, its owners and the account that pays. A namespace that exists already is taken only if it is labelled sluice.dev/workspace=<name>. Deleting the workspace closes its routing and keeps the namespace. With the annotation sluice.dev/paused: "true" events flow as the routes stand, and changes wait until the annotation is gone (deletions of streams a minute at most). What closes does not wait: a Block, a revoked or deleted Activation, a revoked or declined Integration and a deleted Subscription take effect at once, and what they closed stays closed until the pause ends. Control state that Redis loses meanwhile is not rebuilt before it ends (ingress answers 503).',
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
    { name: 'Producer', type: 'boolean', jsonPath: '.status.producer', description: 'Whether it produces.' },
    {
      name: 'Paused',
      type: 'string',
      jsonPath: `.metadata.annotations.${PAUSED_ANNOTATION.replaceAll('.', String.raw`\.`)}`,
      description: `The annotation ${PAUSED_ANNOTATION}: while it is true, changes wait.`,
    },
  ],
});
export type Workspace = z.infer<typeof Workspace.schema>;
