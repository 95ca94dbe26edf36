/** The longest group key, in bytes of UTF-8. */
export const GROUP_KEY_MAX_BYTES = 256;
export const EVENT_ID_MAX_LENGTH = 256;
export const EVENT_TYPE_MAX_LENGTH = 128;
/** The longest value of one forwarded header, and of the content type. */
export const FORWARD_VALUE_MAX_LENGTH = 2048;
/** All forwarded names and values of one event together. */
export const FORWARD_TOTAL_MAX_LENGTH = 8192;
/** Attributes of one CloudEvent in binary mode, extensions included. */
export const ATTRIBUTES_MAX = 64;
/** Names (with `ce-`) and values of all of them together: as many bytes as common receivers take of one header. */
export const ATTRIBUTES_TOTAL_MAX_LENGTH = 8192;

const SIMPLE_GROUP_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
/** Of any kind, the no-break and the ideographic one, too. */
const OUTER_SPACE = /^\p{Z}|\p{Z}$/u;
/** Tab and the bytes from 0x80 on are allowed in a field value (RFC 9110, 5.5); other control characters are not. */
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const EVENT_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const EVENT_TYPE = /^[\x21-\x7e]{1,128}$/;

/**
 * What is wrong with a group key, undefined when nothing is: 1 to 256 bytes of UTF-8, no control characters, no outer
 * spaces. The same rule stands in the schema of Activation, so whatever passes here can be activated.
 */
export function faultOfGroupKey(groupKey: string): string | undefined {
  if (SIMPLE_GROUP_KEY.test(groupKey)) return undefined;
  if (groupKey === '') return 'is empty; leave it out for an event without a group key';
  if (!groupKey.isWellFormed()) return 'is not valid Unicode';
  if (Buffer.byteLength(groupKey) > GROUP_KEY_MAX_BYTES) return 'is longer than 256 bytes of UTF-8';
  if (CONTROL_CHARACTER.test(groupKey)) return 'holds a control character';
  if (OUTER_SPACE.test(groupKey)) return 'begins or ends with a space';
  return undefined;
}

/**
 * What is wrong with an event id, undefined when nothing is: 1 to 256 characters of printable ASCII without outer
 * spaces, because it is delivered as the header `webhook-id`.
 */
export function faultOfEventId(id: string): string | undefined {
  if (EVENT_ID.test(id)) return undefined;
  if (id === '') return 'is empty; leave it out to get an id made';
  if (id.length > EVENT_ID_MAX_LENGTH) return 'is longer than 256 characters';
  return 'must be printable ASCII without outer spaces';
}

/** What is wrong with an event type, undefined when nothing is: 1 to 128 characters of visible ASCII. */
export function faultOfEventType(type: string): string | undefined {
  if (EVENT_TYPE.test(type)) return undefined;
  if (type === '') return 'is empty';
  if (type.length > EVENT_TYPE_MAX_LENGTH) return 'is longer than 128 characters';
  return 'must be visible ASCII without spaces';
}

/** What is wrong with the value of a header that is passed on, undefined when nothing is. */
export function faultOfForwarded(value: string): string | undefined {
  if (value.length > FORWARD_VALUE_MAX_LENGTH) return 'is longer than 2,048 bytes';
  return NOT_A_FIELD_VALUE.test(value) ? 'holds a control character' : undefined;
}
