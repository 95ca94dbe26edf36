import { z } from 'zod';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';

/** The part of an integration that its state derives from. */
type Stated = Pick<Cached<'Integration'>, 'spec' | 'status'>;

export const IntegrationStatus = z.enum(['Pending', 'Active', 'Declined', 'Expired', 'Revoked']).meta({
  description:
    'Pending: the partner has not answered yet; Expired after 14 days. Active: accepted. Declined: by the partner. Revoked: by the producer.',
  example: 'Pending',
});

export const InvitedIntegration = z
  .object({
    publicId: publicIdField('Integration'),
    invitedEmail: z
      .string()
      .nullable()
      .meta({ description: 'Invited address as you sent it; null for a direct grant.', example: 'ada@example.com' }),
    status: IntegrationStatus,
  })
  .meta({ id: 'InvitedIntegration' });

const time = (description: string) =>
  z
    .string()
    .nullable()
    .meta({ format: 'date-time', description: `${description} (RFC 3339), or null.`, example: '2026-01-31T12:00:00Z' });

export const IntegrationEntry = InvitedIntegration.extend({
  name: z.string().meta({
    description: "Name of the custom resource in the producer's namespace.",
    example: 'int-0123456789abcdefghjk',
  }),
  receivingTenantPublicId: publicIdField('Workspace')
    .nullable()
    .meta({ description: 'The receiving workspace; null until there is one.' }),
  issuedAt: time('When the invitation was issued'),
  sentAt: time('When the invitation was mailed or its Secret was written'),
  expiresAt: time('When the invitation expires'),
}).meta({ id: 'Integration' });

/** Returns whether the partner has accepted, or still can. */
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

/** Returns an integration as its producer sees it. */
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
