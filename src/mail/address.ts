import { emailAddress } from '../api/strings.ts';

/** An email address, optionally with a name. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

const plain = emailAddress();

/** Returns true if the text is a single email address, without a name, a second address, or a line break. */
export function isPlainAddress(text: string): boolean {
  return plain.safeParse(text).success;
}

/**
 * Parses an address in the format `address`, `Name <address>`, or `"Name" <address>`. Returns undefined for any other
 * text.
 */
export function parseMailbox(text: string): Mailbox | undefined {
  const named = /^(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<bare>[^"<>\p{Cc}]*?)) *<(?<address>[^<>]*)>$/u.exec(text)?.groups;
  const address = named?.['address'] ?? text;
  return isPlainAddress(address) ? { name: named?.['quoted'] ?? named?.['bare'] ?? '', address } : undefined;
}
