/** The reason why a header from a Secret does not have a value. */
type HeaderFault = 'secret_missing' | 'key_missing' | 'secret_unread' | 'header_value_refused';

/** The result for a header without a value. */
export type HeaderField = { readonly value: string } | { readonly fault: HeaderFault };

/** The maximum length of a value from a Secret, which is sufficient for a signed token. */
export const HEADER_FIELD_MAX = 4_096;

const VALUE = /^[\t -~]*$/;

/**
 * Reads a header value from a field of a Secret. The value can contain visible ASCII characters, spaces and tabs, like
 * the values in the spec. One trailing line break is removed because files often end with a line break (`kubectl create
 * secret --from-file`). If the value is not valid, the result is a fault code that does not contain the value.
 * @param data the base64 value from Kubernetes, or undefined if the Secret does not contain the key
 */
export function readHeaderField(data: string | undefined): HeaderField {
  if (data === undefined) return { fault: 'key_missing' };
  // Each byte is decoded as one character. Bytes outside ASCII are not allowed, even if they are not valid UTF-8.
  const value = Buffer.from(data, 'base64')
    .toString('latin1')
    .replace(/\r?\n$/, '');
  return value.length > HEADER_FIELD_MAX || !VALUE.test(value) ? { fault: 'header_value_refused' } : { value };
}
