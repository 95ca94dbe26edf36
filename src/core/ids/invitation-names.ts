import { createHash, createHmac } from 'node:crypto';
import { crockford } from './ids.ts';

const LENGTH = 20;

function keyed(rootKey: Uint8Array, label: string, parts: readonly (string | number)[]): string {
  return crockford(
    createHmac('sha256', rootKey)
      .update([label, ...parts].join('\0'), 'utf8')
      .digest(),
    LENGTH,
  );
}

/** Normalizes an email address for comparison, which is not case-sensitive. The spec contains the original address. */
export function addressKey(email: string): string {
  return email.toLowerCase();
}

/**
 * Returns the name of the Integration for an invited address. The name is an HMAC, so that the address cannot be
 * guessed. The same request always creates the same object.
 * @param tenant the name of the producer's workspace
 * @param closed the number of earlier invitations of this address that are closed
 */
export function invitedIntegrationName(rootKey: Uint8Array, tenant: string, email: string, closed: number): string {
  return `int-${keyed(rootKey, 'sluice integration name v1', [tenant, addressKey(email), closed])}`;
}

/** Returns the name of the caller's own Free account. The name is an HMAC because many subjects are email addresses. */
export function freeAccountName(rootKey: Uint8Array, issuer: string, subject: string): string {
  return `free-${keyed(rootKey, 'sluice free account v1', [issuer, subject])}`;
}

/** Returns the name of the Workspace that receives an integration on an account, from all three names. */
export function receivingWorkspaceName(producer: string, integration: string, account: string): string {
  const text = `Receiving/${producer}/${integration}/${account}`;
  return `partner-${crockford(createHash('sha256').update(text, 'utf8').digest(), LENGTH)}`;
}
