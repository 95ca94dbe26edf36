/** Why a header from a Secret has no value. */
type HeaderFault = 'secret_missing' | 'key_missing' | 'secret_unread' | 'header_value_refused';

/** The result for such a header. */
export type HeaderField = { readonly value: string } | { readonly fault: HeaderFault };

/** Maximum length of a value from a Secret: enough for a signed token. */
export const HEADER_FIELD_MAX = 4_096;

const VALUE = /^[\t -~]*$/;

/**
 * Reads a header value from a field of a Secret: visible ASCII, spaces and tabs, like the values in the spec. Drops
 * one trailing line break, because files end with one (`kubectl create secret --from-file`). An invalid value gives a
 * fault code; it is never shown.
 *
 * @param data base64 from Kubernetes; undefined if the Secret has no such key
 */
export function readHeaderField(data: string | undefined): HeaderField {
  if (data === undefined) return { fault: 'key_missing' };
  // One character per byte: bytes outside ASCII are not permitted, even if they are not UTF-8.
  const value = Buffer.from(data, 'base64')
    .toString('latin1')
    .replace(/\r?\n$/, '');
  return value.length > HEADER_FIELD_MAX || !VALUE.test(value) ? { fault: 'header_value_refused' } : { value };
}
