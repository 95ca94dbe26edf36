import { createHash, createHmac } from 'node:crypto';
import { crockford } from './ids.ts';

const LENGTH = 20;

/** The prefix for the name of a Workspace created when an invitation is accepted. */
export const RECEIVING_PREFIX = 'partner-';

function keyed(rootKey: Uint8Array, label: string, parts: readonly (string | number)[]): string {
  return crockford(
    createHmac('sha256', rootKey)
      .update([label, ...parts].join('\0'), 'utf8')
      .digest(),
    LENGTH,
  );
}

/**
 * Normalizes an email address so it can be compared case-insensitively. The spec keeps the original address. Only ASCII
 * letters are changed: the lowercase letter of the Kelvin sign (U+212A) is `k`, but it is a different address.
 */
export function addressKey(email: string): string {
  return email.replaceAll(/[A-Z]+/g, letters => letters.toLowerCase());
}

/**
 * Returns the Integration name for an invited address. We use an HMAC so the address can't be guessed. If the same
 * request is resent, the result will be the same object.
 * @param tenant name of the producer's workspace
 * @param closed number of earlier invitations for this address that have been closed
 */
export function invitedIntegrationName(rootKey: Uint8Array, tenant: string, email: string, closed: number): string {
  return `int-${keyed(rootKey, 'sluice integration name v1', [tenant, addressKey(email), closed])}`;
}

/** Regular expression for the names of Free accounts, which only the facade creates. */
export const FREE_ACCOUNT_PATTERN = `^free-[0-9a-hjkmnp-tv-z]{${LENGTH}}$`;

/** Returns the name of the caller's Free account. We use an HMAC because many subjects are email addresses. */
export function freeAccountName(rootKey: Uint8Array, issuer: string, subject: string): string {
  return `free-${keyed(rootKey, 'sluice free account v1', [issuer, subject])}`;
}

/**
 * Returns the name of the Workspace that receives an integration on the given account. The name is derived from all
 * three arguments.
 */
export function receivingWorkspaceName(producer: string, integration: string, account: string): string {
  const text = `Receiving/${producer}/${integration}/${account}`;
  return `${RECEIVING_PREFIX}${crockford(createHash('sha256').update(text, 'utf8').digest(), LENGTH)}`;
}

/**
 * Returns true if the Workspace was created by accepting this integration's invitation. The name can't be chosen
 * by the producer, because it is the name of an existing Workspace.
 */
export function isReceiverOf(workspace: string, producer: string, integration: string, account: string): boolean {
  return workspace.startsWith(RECEIVING_PREFIX) && workspace === receivingWorkspaceName(producer, integration, account);
}

/** Returns the hash used to count the emails from a workspace to an address. An HMAC, so it cannot be guessed. */
export function invitedAddressHash(rootKey: Uint8Array, tenant: string, email: string): string {
  return keyed(rootKey, 'sluice invitation mail v1', [tenant, addressKey(email)]);
}
