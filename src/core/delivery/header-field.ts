/** Why a header that takes its value from a Secret has none. */
export type HeaderFault = 'secret_missing' | 'key_missing' | 'secret_unread' | 'header_value_refused';

/** What such a header has come to. */
export type HeaderField = { readonly value: string } | { readonly fault: HeaderFault };

/** Characters of a value that is read from a Secret: long enough for a signed token. */
export const HEADER_FIELD_MAX = 4_096;

const VALUE = /^[\t -~]*$/;

/**
 * A header's value out of a field of a Secret: visible ASCII, spaces and tabs, as the values in the clear. One line break
 * at the end is left out, because files end with one (`kubectl create secret --from-file`). What cannot be a value is told
 * by a word, never shown.
 *
 * @param data base64, as Kubernetes has it; undefined when the Secret has no such key
 */
export function readHeaderField(data: string | undefined): HeaderField {
  if (data === undefined) return { fault: 'key_missing' };
  // One character a byte: whatever is not ASCII is none of the permitted characters, also when it is no UTF-8.
  const value = Buffer.from(data, 'base64')
    .toString('latin1')
    .replace(/\r?\n$/, '');
  return value.length > HEADER_FIELD_MAX || !VALUE.test(value) ? { fault: 'header_value_refused' } : { value };
}
