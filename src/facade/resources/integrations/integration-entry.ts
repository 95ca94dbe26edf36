import { z } from 'zod';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';

/** Integration fields that determine its state. */
type Stated = Pick<Cached<'Integration'>, 'spec' | 'status'>;

export const IntegrationStatus = z.enum(['Pending', 'Active', 'Declined', 'Expired', 'Revoked']).meta({
  description:
    "The integration's status. The status is Pending until the partner responds to the invitation, followed by Active or Declined. It is Expired after 14 days without a response and Revoked after the producer has ended the integration.",
  example: 'Pending',
});

export const InvitedIntegration = z
  .object({
    publicId: publicIdField('Integration'),
    invitedEmail: z.string().nullable().meta({
      description:
        "The email address that was invited, exactly as you provided it. Direct grants don't have an email address.",
      example: 'ada@example.com',
    }),
    status: IntegrationStatus,
  })
  .meta({ id: 'InvitedIntegration' });

const time = (description: string) =>
  z
    .string()
    .nullable()
    .meta({
      format: 'date-time',
      description: `${description} (RFC 3339). Can be null.`,
      example: '2026-01-31T12:00:00Z',
    });

export const IntegrationEntry = InvitedIntegration.extend({
  name: z.string().meta({
    description: "The name of the custom resource within the producer's namespace.",
    example: 'int-0123456789abcdefghjk',
  }),
  receivingTenantPublicId: publicIdField('Workspace')
    .nullable()
    .meta({ description: 'The receiving workspace, or null if the partner has not accepted the invitation yet.' }),
  issuedAt: time('The time at which the invitation was issued'),
  sentAt: time('The time at which the invitation was sent or its Secret was written'),
  expiresAt: time('The time at which the invitation expires'),
}).meta({ id: 'Integration' });

/** Returns true if the partner has accepted the invitation or can still accept it. */
export function isOpen(integration: Stated, nowMs: number): boolean {
  const state = integrationStatus(integration, nowMs);
  return state === 'Pending' || state === 'Active';
}

export function invitedIntegration(
  integration: Cached<'Integration'>,
  nowMs: number,
): z.output<typeof InvitedIntegration> {
  const { namespace = '', name } = integration.metadata;
  return {
    publicId: publicId('Integration', namespace, name),
    invitedEmail: integration.spec.invitedEmail ?? null,
    status: integrationStatus(integration, nowMs),
  };
}

/** Returns an integration as it is shown to the producer. */
export function integrationEntry(integration: Cached<'Integration'>, nowMs: number): z.output<typeof IntegrationEntry> {
  const { metadata, spec, status } = integration;
  const { issuedAt = null, sentAt = null, expiresAt = null } = status?.invitation ?? {};
  return {
    ...invitedIntegration(integration, nowMs),
    name: metadata.name,
    receivingTenantPublicId: spec.workspace === undefined ? null : tenantId(spec.workspace),
    issuedAt,
    sentAt,
    expiresAt,
  };
}
