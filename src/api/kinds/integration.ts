import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutableOnceSet, oneWay, withRule, withTransitions } from '../rules.ts';
import { emailAddress, objectName, sha256Hex, timestamp } from '../strings.ts';

export const IntegrationSpec = withTransitions(
  withRule(
    z.object({
      invitedEmail: emailAddress()
        .describe(
          'The email address to invite, up to 254 characters long. No other field contains it, because it is personal data. You can remove it once workspace is set, but not change it or add it later.',
        )
        .optional(),
      workspace: objectName()
        .describe(
          'The name of the receiving Workspace. Only Subscriptions in its namespace receive events. Sluice sets this field when the partner accepts the invitation. To grant access directly, set it yourself. Immutable once set. If you delete the Integration and create it again with a different workspace, its id refers to the new workspace for callers who have access to both.',
        )
        .optional(),
      declined: z
        .boolean()
        .describe('Indicates that the partner has declined the invitation. You cannot undo this. Defaults to false.')
        .optional(),
      revoked: z
        .boolean()
        .describe(
          'Indicates that the producer has ended the integration. Events are then no longer routed or delivered. You cannot undo this. Defaults to false.',
        )
        .optional(),
    }),
    {
      rule: 'has(self.invitedEmail) || has(self.workspace)',
      message: 'must have invitedEmail (an invitation) or workspace (a direct grant)',
      holds: spec => spec.invitedEmail !== undefined || spec.workspace !== undefined,
    },
  ),
  {
    rule: '!has(self.invitedEmail) || (has(oldSelf.invitedEmail) && self.invitedEmail == oldSelf.invitedEmail)',
    message: 'you can remove invitedEmail, but not change or add it later: create another Integration',
    fieldPath: '.invitedEmail',
  },
  immutableOnceSet('workspace'),
  oneWay('declined'),
  oneWay('revoked'),
).describe('Specifies the partner, and whether the integration has been declined or revoked.');
export type IntegrationSpec = z.infer<typeof IntegrationSpec>;

export const IntegrationStatus = z
  .object({
    ...statusFields,
    invitation: z
      .object({
        tokenHash: sha256Hex()
          .describe(
            'The SHA-256 hash of the invitation token as 64 hexadecimal digits. The token itself is sent by email or, when no mail server is configured, stored in the Secret <integration>-invitation.',
          )
          .optional(),
        issuedAt: timestamp().describe('The time (RFC 3339) at which the token was issued.').optional(),
        expiresAt: timestamp()
          .describe('The time (RFC 3339) at which the invitation expires, 14 days after issuedAt.')
          .optional(),
        sentAt: timestamp()
          .describe(
            'The time (RFC 3339) at which the invitation was sent or, without a mail server, its Secret was written.',
          )
          .optional(),
      })
      .describe('The current state of the invitation. Not set for direct grants.')
      .optional(),
  })
  .describe('The most recently observed status of the integration.');
export type IntegrationStatus = z.infer<typeof IntegrationStatus>;

export const Integration = defineKind({
  kind: 'Integration',
  plural: 'integrations',
  shortNames: ['intg'],
  scope: 'Namespaced',
  description:
    'Integration connects a partner to the producer that owns the namespace. You can invite the partner by email, or grant access to its workspace directly. The partner sees all published streams, but only receives events once it has subscribed to a stream and you have activated group keys.',
  spec: IntegrationSpec,
  status: IntegrationStatus,
  // The facade uses this to look up invitations.
  selectableFields: ['.status.invitation.tokenHash'],
  columns: [
    conditionColumn('Accepted', 'Accepted', 'reason', 'The current state of the invitation.'),
    conditionColumn(
      'Admitted',
      'Admitted',
      'status',
      'Indicates whether the receiving workspace has accepted the integration.',
    ),
    {
      name: 'Workspace',
      type: 'string',
      jsonPath: '.spec.workspace',
      description: "The receiving workspace's name.",
    },
  ],
});
export type Integration = z.infer<typeof Integration.schema>;
