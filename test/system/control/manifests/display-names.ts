const CONTROL = 'must not contain line breaks, tabs or other control characters: remove them';
const INVISIBLE = 'must contain at least one visible character such as a letter or digit';

/** Names which must be refused, by the reason. */
export const unusableNames: readonly (readonly [what: string, name: string, why: string])[] = [
  ['only spaces', '  ', INVISIBLE],
  ['only no-break and ideographic spaces', '\u00a0\u3000', INVISIBLE],
  ['only a zero width space', '\u200b', INVISIBLE],
  ['a line break', 'a\nb', CONTROL],
  ['a carriage return at its end', 'a\r', CONTROL],
  ['a tab', 'a\tb', CONTROL],
  ['an escape', 'a\u001b[31m', CONTROL],
  ['DEL', 'a\u007f', CONTROL],
  ['a next line character', 'a\u0085', CONTROL],
  ['a line separator', 'a\u2028b', CONTROL],
];

/** Names in various scripts, which must be accepted. */
export const usableNames = [
  'é日本😀𝔘\u{10ffff}',
  'Grundlagen für alle',
  '日本語',
  '👩‍👩‍👧',
  'e\u0301',
  '.',
  ' padded ',
];
