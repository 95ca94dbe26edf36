const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

/** CRC16 (XMODEM) of each byte. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/**
 * Returns the slot that a Redis Cluster uses for a key (0 to 16383). If there is text between the first opening brace
 * and the next closing brace, only this text is used. If there is none, the whole key is used. The key must only
 * contain ASCII characters. For the keys of Sluice, this is the case up to the closing brace.
 */
export function keySlot(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const [from, to] = close > open + 1 ? [open + 1, close] : [0, key.length];
  let crc = 0;
  for (let i = from; i < to; i++) {
    crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ (key.charCodeAt(i) & 0xff)] as number);
  }
  return crc % SLOTS;
}
