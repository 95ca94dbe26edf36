import { emailAddress } from '../api/strings.ts';

/** A mailbox; without a name that is empty. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

const plain = emailAddress();

/** Whether it is one plain e-mail address and nothing else: no name, no second one, no line break. */
export function isPlainAddress(text: string): boolean {
  return plain.safeParse(text).success;
}

/** `address`, `Name <address>` or `"Name" <address>`; undefined for anything else. */
export function parseMailbox(text: string): Mailbox | undefined {
  const named = /^(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<bare>[^"<>\p{Cc}]*?)) *<(?<address>[^<>]*)>$/u.exec(text)?.groups;
  const address = named?.['address'] ?? text;
  return isPlainAddress(address) ? { name: named?.['quoted'] ?? named?.['bare'] ?? '', address } : undefined;
}
