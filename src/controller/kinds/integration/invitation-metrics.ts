import { createLabeledCounter, type Registry } from '../../../telemetry/metrics.ts';

export interface InvitationMetrics {
  readonly mailed: (result: 'sent' | 'failed' | 'held') => void;
}

export function createInvitationMetrics(registry: Registry): InvitationMetrics {
  const mailed = createLabeledCounter(registry, {
    name: 'sluice_controller_invitation_mails_total',
    help: 'The number of attempts to send an invitation email, by result: sent, failed, or held (the address or the account has reached its limit).',
    label: 'result',
    known: ['sent', 'failed', 'held'],
  });
  return { mailed };
}
