import * as fc from 'fast-check';

const isSurrogate = (codePoint: number) => codePoint >= 0xd800 && codePoint <= 0xdfff;
const character = fc
  .oneof(fc.nat({ max: 0xff }), fc.nat({ max: 0x10_ff_ff }))
  .filter(codePoint => !isSurrogate(codePoint))
  .map(codePoint => String.fromCodePoint(codePoint));

/**
 * Generates strings of any code points, half of which are below 256. The unit `binary` of fast-check is similar, but it
 * needs a second of CPU time in each process to list all code points.
 */
export function anyText(constraints: { readonly maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: character });
}
