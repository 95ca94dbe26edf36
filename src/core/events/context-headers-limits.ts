/** The maximum length of a group key in UTF-8 bytes. */
const GROUP_KEY_MAX_BYTES = 256;
const EVENT_ID_MAX_LENGTH = 256;
const EVENT_TYPE_MAX_LENGTH = 128;
/** The maximum length for the value of a forwarded header. Also used for the content type. */
const FORWARD_VALUE_MAX_LENGTH = 2048;
/** The maximum total length of an event's forwarded names and values. */
export const FORWARD_TOTAL_MAX_LENGTH = 8192;
/** The maximum number of attributes for a CloudEvent in binary mode, including extensions. */
export const ATTRIBUTES_MAX = 64;
/**
 * The maximum total length of names (including `ce-`) and values: the limit of common receivers for a single header.
 */
export const ATTRIBUTES_TOTAL_MAX_LENGTH = 8192;

const SIMPLE_GROUP_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
/** Matches spaces of any kind, e.g. no-break or ideographic ones. */
const OUTER_SPACE = /^\p{Z}|\p{Z}$/u;
/** Tabs and bytes from 0x80 are allowed in a field value (RFC 9110, 5.5), but no other control characters. */
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const EVENT_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const EVENT_TYPE = /^[\x21-\x7e]{1,128}$/;

/**
 * Returns an error message if the group key is invalid, or undefined if it is valid. A group key must be 1 to 256 bytes
 * of UTF-8 without control characters and without leading or trailing spaces. The schema of Activation uses the same
 * rule, which ensures that it is possible to activate every valid key.
 */
export function faultOfGroupKey(groupKey: string): string | undefined {
  if (SIMPLE_GROUP_KEY.test(groupKey)) return undefined;
  if (groupKey === '') return 'is empty. To send an event without a group key, omit it';
  if (!groupKey.isWellFormed()) return 'is not valid Unicode';
  if (Buffer.byteLength(groupKey) > GROUP_KEY_MAX_BYTES) return 'is longer than 256 bytes of UTF-8';
  if (CONTROL_CHARACTER.test(groupKey)) return 'contains a control character';
  if (OUTER_SPACE.test(groupKey)) return 'has a leading or trailing space';
  return undefined;
}

/**
 * Returns an error message if the event id is invalid, or undefined if it is valid. An event id must be 1 to 256
 * printable ASCII characters without leading or trailing spaces, because the id is used in the `webhook-id` header of
 * deliveries.
 */
export function faultOfEventId(id: string): string | undefined {
  if (EVENT_ID.test(id)) return undefined;
  if (id === '') return 'is empty. To use a generated id, omit it';
  if (id.length > EVENT_ID_MAX_LENGTH) return 'is longer than 256 characters';
  return 'must be printable ASCII without leading or trailing spaces';
}

/**
 * Returns an error message if the event type is invalid, or undefined if it is valid. An event type must be 1 to 128
 * visible ASCII characters.
 */
export function faultOfEventType(type: string): string | undefined {
  if (EVENT_TYPE.test(type)) return undefined;
  if (type === '') return 'is empty';
  if (type.length > EVENT_TYPE_MAX_LENGTH) return 'is longer than 128 characters';
  return 'must be visible ASCII without spaces';
}

/** Returns an error message if the value of a forwarded header is invalid, or undefined if it is valid. */
export function faultOfForwarded(value: string): string | undefined {
  if (value.length > FORWARD_VALUE_MAX_LENGTH) return 'is longer than 2,048 bytes';
  return NOT_A_FIELD_VALUE.test(value) ? 'contains a control character' : undefined;
}
