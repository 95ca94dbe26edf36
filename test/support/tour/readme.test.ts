import { expect, test } from 'vitest';
import { missingLines, readExamples } from './readme.ts';

const PAGE = `
\`\`\`sh
one
\`\`\`

\`\`\`text
first … line
second
\`\`\`

Words.

\`\`\`sh
two
\`\`\`

More words.

\`\`\`text
a picture
\`\`\`
`;

test('an example is a shell block followed immediately by a text block', () => {
  expect(readExamples(PAGE)).toEqual([
    { commands: 'one\n', output: ['first … line', 'second'] },
    { commands: 'two\n', output: [] },
  ]);
});

test('lines are found in order, with any text in place of an ellipsis', () => {
  const shown = ['{"id":"a",…"status":503', '{"id":"a",…"status":200'];
  expect(missingLines(shown, '{"id":"a","x":1,"status":503}\n{"id":"a","x":2,"status":200}\n')).toEqual([]);
  expect(missingLines(shown, '{"id":"a","x":1,"status":200}\n{"id":"a","x":2,"status":503}\n')).toEqual([shown[1]]);
});

test('an ellipsis does not match several lines', () => {
  expect(missingLines(['a … b'], 'a\nb\n')).toEqual(['a … b']);
});
