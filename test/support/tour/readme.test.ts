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

test('an example is a shell block and the text block right behind it', () => {
  expect(readExamples(PAGE)).toEqual([
    { commands: 'one\n', output: ['first … line', 'second'] },
    { commands: 'two\n', output: [] },
  ]);
});

test('lines are found in their order, with anything in place of an ellipsis', () => {
  const shown = ['{"id":"a",…"status":503', '{"id":"a",…"status":200'];
  expect(missingLines(shown, '{"id":"a","x":1,"status":503}\n{"id":"a","x":2,"status":200}\n')).toEqual([]);
  expect(missingLines(shown, '{"id":"a","x":1,"status":200}\n{"id":"a","x":2,"status":503}\n')).toEqual([shown[1]]);
});

test('an ellipsis does not span lines', () => {
  expect(missingLines(['a … b'], 'a\nb\n')).toEqual(['a … b']);
});
