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
          'The email address that receives the invitation, with at most 254 characters. This is personal data, and it is only shown in this field. You can remove the address after workspace is set. You cannot change it or add it later.',
        )
        .optional(),
      workspace: objectName()
        .describe(
          'The name of the receiving Workspace. Only Subscriptions in this workspace receive events. The field is set when the partner accepts the invitation. As the producer, you can also set it to grant access directly. You cannot change this field after it is set.',
        )
        .optional(),
      declined: z
        .boolean()
        .describe('If true, the partner has declined the invitation. You cannot undo this. Defaults to false.')
        .optional(),
      revoked: z
        .boolean()
        .describe(
          'If true, the producer has ended the integration, and no more events are routed or delivered. You cannot undo this. Defaults to false.',
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
).describe('The partner of the integration, and whether the integration has ended.');
export type IntegrationSpec = z.infer<typeof IntegrationSpec>;

export const IntegrationStatus = z
  .object({
    ...statusFields,
    invitation: z
      .object({
        tokenHash: sha256Hex()
          .describe(
            'The SHA-256 hash of the invitation token, with 64 hexadecimal digits. The token is sent by email. If no mail server is configured, the token is stored in the Secret <integration>-invitation.',
          )
          .optional(),
        issuedAt: timestamp().describe('The time (RFC 3339) when the token was issued.').optional(),
        expiresAt: timestamp()
          .describe('The time (RFC 3339) when the invitation expires, which is 14 days after issuedAt.')
          .optional(),
        sentAt: timestamp()
          .describe('The time (RFC 3339) when the invitation was sent or its Secret was written.')
          .optional(),
      })
      .describe('The state of the invitation. This field is not set for a direct grant.')
      .optional(),
  })
  .describe('The observed state of the integration.');
export type IntegrationStatus = z.infer<typeof IntegrationStatus>;

export const Integration = defineKind({
  kind: 'Integration',
  plural: 'integrations',
  shortNames: ['intg'],
  scope: 'Namespaced',
  description:
    'An Integration connects the producer that owns the namespace with one partner. You can invite the partner by email or grant access to its workspace directly. The partner can see all published streams. Events flow after the partner subscribes to a stream and you activate group keys.',
  spec: IntegrationSpec,
  status: IntegrationStatus,
  columns: [
    conditionColumn('Accepted', 'Accepted', 'reason', 'The state of the invitation.'),
    conditionColumn('Admitted', 'Admitted', 'status', 'Whether the receiving workspace has accepted.'),
    { name: 'Workspace', type: 'string', jsonPath: '.spec.workspace', description: 'The receiving workspace.' },
  ],
});
export type Integration = z.infer<typeof Integration.schema>;
