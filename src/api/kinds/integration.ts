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
          'Email address to invite, up to 254 characters long. Since this is personal data, the address is not included in any other field. You can remove the address after workspace has been set. You cannot change the address or add it later.',
        )
        .optional(),
      workspace: objectName()
        .describe(
          'The name of the receiving Workspace; only Subscriptions from this workspace will receive events. Populated when the partner accepts their invitation or set by the producer to grant access directly. This field cannot be changed after it has been set.',
        )
        .optional(),
      declined: z
        .boolean()
        .describe('Indicates that the invitation was declined by the partner. You cannot undo this. Defaults to false.')
        .optional(),
      revoked: z
        .boolean()
        .describe(
          'Indicates that the integration was ended by the producer. After that, events are no longer routed or delivered. You cannot undo this. Defaults to false.',
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
).describe('Specifies the partner, as well as whether the integration has ended.');
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
      .describe('The current state of the invitation. This is not set for direct grants.')
      .optional(),
  })
  .describe('Most recently observed status of the integration.');
export type IntegrationStatus = z.infer<typeof IntegrationStatus>;

export const Integration = defineKind({
  kind: 'Integration',
  plural: 'integrations',
  shortNames: ['intg'],
  scope: 'Namespaced',
  description:
    'Integration represents the connection between a single partner and the producer that owns the namespace. Partners can either be invited by email or have access granted to their workspace directly. All published streams are visible to the partner, but events will only flow once they have subscribed to a stream and group keys have been activated.',
  spec: IntegrationSpec,
  status: IntegrationStatus,
  // The facade uses this to look up invitations.
  selectableFields: ['.status.invitation.tokenHash'],
  columns: [
    conditionColumn('Accepted', 'Accepted', 'reason', 'The current state of the invitation.'),
    conditionColumn('Admitted', 'Admitted', 'status', 'Whether the receiving workspace has accepted.'),
    {
      name: 'Workspace',
      type: 'string',
      jsonPath: '.spec.workspace',
      description: 'The name of the receiving workspace.',
    },
  ],
});
export type Integration = z.infer<typeof Integration.schema>;
