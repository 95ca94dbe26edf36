import { emailAddress } from '../api/strings.ts';

/** An email address, optionally with a name. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

const plain = emailAddress();

/**
 * Returns true if the text is a single plain email address. This means that it does not contain a name, a second
 * address, or a line break.
 */
export function isPlainAddress(text: string): boolean {
  return plain.safeParse(text).success;
}

/**
 * Parses an address that is written as `address`, `Name <address>` or `"Name" <address>`. For anything else, this
 * returns undefined.
 */
export function parseMailbox(text: string): Mailbox | undefined {
  const named = /^(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<bare>[^"<>\p{Cc}]*?)) *<(?<address>[^<>]*)>$/u.exec(text)?.groups;
  const address = named?.['address'] ?? text;
  return isPlainAddress(address) ? { name: named?.['quoted'] ?? named?.['bare'] ?? '', address } : undefined;
}
