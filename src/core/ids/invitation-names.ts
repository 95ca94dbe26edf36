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

/** Addresses are compared without case; what was sent stays in the spec. */
export function addressKey(email: string): string {
  return email.toLowerCase();
}

/**
 * Name of the Integration that invites an address: an HMAC, so that nobody finds the address by trying. Equal calls make
 * one object.
 *
 * @param tenant name of the producing workspace
 * @param closed how many earlier invitations of this address are closed
 */
export function invitedIntegrationName(rootKey: Uint8Array, tenant: string, email: string, closed: number): string {
  return `int-${keyed(rootKey, 'sluice integration name v1', [tenant, addressKey(email), closed])}`;
}

/** Name of somebody's own Free account: an HMAC, as many subjects are e-mail addresses. */
export function freeAccountName(rootKey: Uint8Array, issuer: string, subject: string): string {
  return `free-${keyed(rootKey, 'sluice free account v1', [issuer, subject])}`;
}

/** Name of the Workspace that receives an integration on an account, by the names of all three. */
export function receivingWorkspaceName(producer: string, integration: string, account: string): string {
  const text = `Receiving/${producer}/${integration}/${account}`;
  return `partner-${crockford(createHash('sha256').update(text, 'utf8').digest(), LENGTH)}`;
}
