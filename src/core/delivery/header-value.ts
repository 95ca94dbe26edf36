const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns true if this text can be used as the value of a header field (RFC 9110, 5.5). There should be a single byte
 * for each character.
 */
export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value);
}
