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
          'E-mail address for the invitation, at most 254 characters. Personal data: shown only here. You can remove it once workspace is set. You cannot change it or add it later.',
        )
        .optional(),
      workspace: objectName()
        .describe(
          'The receiving Workspace. Set when the partner accepts the invitation, or by the producer as a direct grant. Immutable once set. Events go only to Subscriptions in that workspace.',
        )
        .optional(),
      declined: z.boolean().describe('True: the partner declined the invitation. One-way. Absent: false.').optional(),
      revoked: z
        .boolean()
        .describe(
          'True: the producer ended the integration. Nothing is routed or attempted any more. One-way. Absent: false.',
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
).describe('The invited or granted partner, and whether the integration has ended.');
export type IntegrationSpec = z.infer<typeof IntegrationSpec>;

export const IntegrationStatus = z
  .object({
    ...statusFields,
    invitation: z
      .object({
        tokenHash: sha256Hex()
          .describe(
            'SHA-256 of the invitation token, as 64 hexadecimal digits. The token itself is in the e-mail or, without a mail server, in the Secret <integration>-invitation.',
          )
          .optional(),
        issuedAt: timestamp().describe('When the token was issued (RFC 3339).').optional(),
        expiresAt: timestamp().describe('When the invitation expires (RFC 3339): 14 days after issuedAt.').optional(),
        sentAt: timestamp().describe('When the invitation was mailed, or its Secret written (RFC 3339).').optional(),
      })
      .describe('The invitation. Absent for a direct grant.')
      .optional(),
  })
  .describe('Observed state of the integration.');
export type IntegrationStatus = z.infer<typeof IntegrationStatus>;

export const Integration = defineKind({
  kind: 'Integration',
  plural: 'integrations',
  shortNames: ['intg'],
  scope: 'Namespaced',
  description:
    'The relation between the producer that owns the namespace and one partner. You invite the partner by e-mail, or grant its workspace directly. The partner sees every published stream. Events flow once it subscribes and group keys are activated.',
  spec: IntegrationSpec,
  status: IntegrationStatus,
  columns: [
    conditionColumn('Accepted', 'Accepted', 'reason', 'State of the invitation.'),
    conditionColumn('Admitted', 'Admitted', 'status', 'Whether the receiving workspace agreed.'),
    { name: 'Workspace', type: 'string', jsonPath: '.spec.workspace', description: 'The receiving workspace.' },
  ],
});
export type Integration = z.infer<typeof Integration.schema>;
