import { Counter, type Registry } from '../../../telemetry/metrics.ts';

export interface InvitationMetrics {
  readonly mailed: (result: 'sent' | 'failed' | 'held') => void;
}

export function createInvitationMetrics(registry: Registry): InvitationMetrics {
  const mails = new Counter({
    name: 'sluice_controller_invitation_mails_total',
    help: 'The number of attempts at sending an invitation email, by result: sent, failed, or held because the address or the account has reached its limit.',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  for (const result of ['sent', 'failed', 'held']) mails.inc({ result }, 0);
  return { mailed: result => mails.inc({ result }) };
}
