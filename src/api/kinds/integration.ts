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
          'E-mail address that the invitation goes to. Personal data: shown here and nowhere else. May be removed once workspace is set, never changed or added later. At most 254 characters.',
        )
        .optional(),
      workspace: objectName()
        .describe(
          "The grant: the Workspace that receives. Written when the invitation is accepted, or by the producer as a direct grant. Immutable once set. Data flows only to that workspace's own Subscriptions.",
        )
        .optional(),
      declined: z.boolean().describe('True: the partner declined the invitation. One-way. Absent: false.').optional(),
      revoked: z
        .boolean()
        .describe(
          'True: the producer ended the integration; nothing is routed or attempted any more. One-way. Absent: false.',
        )
        .optional(),
    }),
    {
      rule: 'has(self.invitedEmail) || has(self.workspace)',
      message: 'needs invitedEmail (an invitation) or workspace (a direct grant)',
      holds: spec => spec.invitedEmail !== undefined || spec.workspace !== undefined,
    },
  ),
  {
    rule: '!has(self.invitedEmail) || (has(oldSelf.invitedEmail) && self.invitedEmail == oldSelf.invitedEmail)',
    message: 'invitedEmail can be removed, but not changed or added later: make another Integration',
    fieldPath: '.invitedEmail',
  },
  immutableOnceSet('workspace'),
  oneWay('declined'),
  oneWay('revoked'),
).describe('Who is invited or granted, and whether that still holds.');
export type IntegrationSpec = z.infer<typeof IntegrationSpec>;

export const IntegrationStatus = z
  .object({
    ...statusFields,
    invitation: z
      .object({
        tokenHash: sha256Hex()
          .describe(
            'SHA-256 of the invitation token, as 64 hexadecimal digits. The token itself is in the e-mail, or in the Secret <integration>-invitation where there is no mail server.',
          )
          .optional(),
        issuedAt: timestamp().describe('When the token was issued (RFC 3339).').optional(),
        expiresAt: timestamp().describe('Until when it can be accepted (RFC 3339): 14 days after issuedAt.').optional(),
        sentAt: timestamp().describe('When it was mailed, or its Secret written (RFC 3339).').optional(),
      })
      .describe('The invitation. Absent for a direct grant.')
      .optional(),
  })
  .describe('What the controller has made of it.');
export type IntegrationStatus = z.infer<typeof IntegrationStatus>;

export const Integration = defineKind({
  kind: 'Integration',
  plural: 'integrations',
  shortNames: ['intg'],
  scope: 'Namespaced',
  description:
    'A partner of the producer that owns the namespace: invited by e-mail, or granted directly to a workspace. A partner sees every published stream; events flow once it subscribes and group keys are activated.',
  spec: IntegrationSpec,
  status: IntegrationStatus,
  columns: [
    conditionColumn('Accepted', 'Accepted', 'reason', 'How the invitation stands.'),
    conditionColumn('Admitted', 'Admitted', 'status', 'Whether the receiving workspace consents.'),
    { name: 'Workspace', type: 'string', jsonPath: '.spec.workspace', description: 'The workspace that receives.' },
  ],
});
export type Integration = z.infer<typeof Integration.schema>;
