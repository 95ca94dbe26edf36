import { emailAddress } from '../api/strings.ts';

/** An email address with an optional name. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

const plain = emailAddress();

/** Returns whether the text is exactly one plain email address: no name, no second address, no line break. */
export function isPlainAddress(text: string): boolean {
  return plain.safeParse(text).success;
}

/** Parses `address`, `Name <address>` or `"Name" <address>`. Returns undefined if the text has a different format. */
export function parseMailbox(text: string): Mailbox | undefined {
  const named = /^(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<bare>[^"<>\p{Cc}]*?)) *<(?<address>[^<>]*)>$/u.exec(text)?.groups;
  const address = named?.['address'] ?? text;
  return isPlainAddress(address) ? { name: named?.['quoted'] ?? named?.['bare'] ?? '', address } : undefined;
}
